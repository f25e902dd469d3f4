/** One streamed batch, as a client with gzip sends it, and when its lines came. */
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { LargeBatch } from "./large-batch.ts";

export interface StreamedAnswer {
  readonly rewards: readonly (number | null)[];
  readonly results: number;
  readonly bodyBytes: number;
  readonly wallSeconds: number;
  /** From the request to the end, the longest time without a line. */
  readonly longestGapSeconds: number;
}

const newline = 0x0a;

/** Throws unless the answer is whole. */
export async function requestStreamed(
  { url, apiKey }: { readonly url: string; readonly apiKey: string },
  { json }: LargeBatch,
): Promise<StreamedAnswer> {
  const body = await promisify(gzip)(json);
  const startedMs = performance.now();
  const response = await fetch(`${url}/v1/rewards`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${apiKey}`,
      "content-type": "application/json",
      "content-encoding": "gzip",
      accept: "application/x-ndjson",
    },
    body,
  });
  if (!response.ok || !response.body) throw new Error(`${response.status}: ${await response.text()}`);
  let lastMs = startedMs;
  let longestGapMs = 0;
  const pieces: Buffer[] = [];
  for await (const bytes of response.body) {
    const piece = Buffer.from(bytes);
    pieces.push(piece);
    if (!piece.includes(newline)) continue;
    longestGapMs = Math.max(longestGapMs, performance.now() - lastMs);
    lastMs = performance.now();
  }
  const wallSeconds = (performance.now() - startedMs) / 1_000;
  return {
    ...readLines(Buffer.concat(pieces).toString()),
    bodyBytes: body.length,
    wallSeconds,
    longestGapSeconds: longestGapMs / 1_000,
  };
}

function readLines(text: string): Pick<StreamedAnswer, "rewards" | "results"> {
  const lines = text.trimEnd().split("\n");
  const last = JSON.parse(lines.at(-1) ?? "");
  if (last.type !== "summary") throw new Error(`the last line is no summary: ${JSON.stringify(last)}`);
  const results = lines.filter((line) => line.startsWith('{"type":"result"')).length;
  return { rewards: last.rewards, results };
}
