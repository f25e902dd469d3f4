/** A command of package.json, started as a person types it: by npm, in a process group of its own as a shell gives it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { listProcessTree } from "../bench/process-tree.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Whom a signal is sent to. */
export type Addressee =
  /** npm alone, as by `kill`. */
  | "npm"
  /** The process group, as by a terminal's Ctrl-C and by `timeout`. */
  | "group"
  /** Every process, those of other groups too, as by systemd. */
  | "all";

export interface TypedCommand {
  /** Its lines on standard output so far, and on standard error. */
  readonly out: readonly string[];
  readonly err: readonly string[];
  /** Its first line on standard output. */
  readonly firstLine: Promise<string>;
  /** npm's exit code; null when a signal ended it. */
  readonly exited: Promise<number | null>;
  signal(name: NodeJS.Signals, to: Addressee): void;
  /** Every process that the command started and that is still there, npm included. */
  alive(): readonly number[];
  /** Whatever is left of it. */
  end(): void;
}

export function typeCommand(
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): TypedCommand {
  const child = spawn("npm", ["run", "-s", ...words], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const pid = child.pid ?? 0;
  const [out, err]: [string[], string[]] = [[], []];
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => out.push(line));
  createInterface({ input: child.stderr }).on("line", (line) => err.push(line));
  const exited = once(child, "exit").then(([code]) => code as number | null);
  const firstLine = once(lines, "line").then(([line]) => line as string);
  firstLine.catch(() => {});
  const seen = new Map<number, string>();
  const look = () => {
    for (const each of listProcessTree(pid)) if (!seen.has(each)) seen.set(each, startOf(each));
  };
  const watching = setInterval(look, 25).unref();
  return {
    out,
    err,
    firstLine,
    exited,
    signal(name, to) {
      look();
      if (to === "npm") send(pid, name);
      else if (to === "group") send(-pid, name);
      else for (const each of listProcessTree(pid)) send(each, name);
    },
    alive: () =>
      [...seen].filter(([each, start]) => start !== "" && startOf(each) === start).map(([each]) => each),
    end() {
      clearInterval(watching);
      for (const [each, start] of seen) if (start !== "" && startOf(each) === start) send(each, "SIGKILL");
    },
  };
}

/** When a process began, which tells it from a later one with its number; empty when it is no more. */
function startOf(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return fields[0] === "Z" ? "" : (fields[19] ?? "");
  } catch {
    return "";
  }
}

function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // it ended while we looked
  }
}
