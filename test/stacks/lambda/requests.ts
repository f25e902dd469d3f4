/** What tests send to a function's URL, and what they read of its logs. */
import { readdirSync, readFileSync } from "node:fs";
import { smokeCompletions, smokeTask } from "../../../functions/local/smoke-programs.ts";
import type { Container } from "./container.ts";

export const smokeBatch = {
  tasks: { records: smokeTask },
  samples: Object.values(smokeCompletions).map((completion) => ({ task: "records", completion })),
};

/** One program, which must print 1. */
export function batchOf(source: string, more: Readonly<Record<string, unknown>> = {}) {
  const task = { test_cases: [{ input: "", output: "1" }], limits: { time_ms: 60_000 } };
  return { samples: [{ task, completion: `\`\`\`python\n${source}\n\`\`\`` }], ...more };
}

const marker = "a-program-of-the-frozen";

/** The same, as a process that the machine's list tells from all others. */
export function markedSleep(seconds: number): string {
  const program = `import time; time.sleep(${seconds}); print(1)`;
  return `import os, sys\nos.execv(sys.executable, [sys.executable, "-c", "${program}", "${marker}"])`;
}

/** How many of these run now. */
export function countMarked(): number {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && commandOf(name).includes(marker)).length;
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return ""; // it ended while we looked
  }
}

export function sleepThenPrint(seconds: number): string {
  return `import time\ntime.sleep(${seconds})\nprint(1)`;
}

export interface Caller {
  readonly apiKey: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function send(
  { url }: Pick<Container, "url">,
  path: string,
  { apiKey, headers = {}, ...init }: Caller & Omit<RequestInit, "headers">,
): Promise<Response> {
  const more = { authorization: `Bearer ${apiKey}`, "content-type": "application/json", ...headers };
  return fetch(`${url}${path}`, { ...init, headers: more });
}

export function grade(
  container: Pick<Container, "url">,
  batch: unknown,
  caller: Caller & Omit<RequestInit, "headers">,
): Promise<Response> {
  return send(container, "/v1/rewards", { method: "POST", body: JSON.stringify(batch), ...caller });
}

export type Line = Readonly<Record<string, unknown>> & { readonly type: string };

/** The lines of a stream, each with the time at which it came. Throws when the stream is cut. */
export async function readLines(response: Response): Promise<{ line: Line; atMs: number }[]> {
  const lines: { line: Line; atMs: number }[] = [];
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of response.body as unknown as AsyncIterable<Uint8Array>) {
    const parts = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    for (const part of parts) lines.push({ line: JSON.parse(part), atMs: performance.now() });
  }
  return lines;
}

/** The structured lines that a container wrote; whatever else it wrote is left out. */
export function logOf(container: Pick<Container, "said">): Readonly<Record<string, unknown>>[] {
  return container.said().flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : []));
}
