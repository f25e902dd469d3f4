import { readdirSync, readFileSync } from "node:fs";

// Looks at the host through /proc. A process may end while it is looked at: it counts as gone.

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

const allPids = () =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

const statOf = (pid: number) => readProc(pid, "stat").split(") ").at(-1)?.split(" ") ?? [];

/** Processes of the host whose command line holds the text. */
export function pidsWith(text: string): number[] {
  return allPids().filter((pid) => pid !== process.pid && readProc(pid, "cmdline").includes(text));
}

/** A process, its children, their children, and so on. */
export function familyOf(root: number): number[] {
  const parents = new Map(allPids().map((pid) => [pid, Number(statOf(pid)[1])]));
  const family = [root];
  for (const member of family) {
    for (const [pid, parent] of parents) if (parent === member) family.push(pid);
  }
  return family;
}

/** Whether the process is there and not just waiting to be reaped. */
export function isAlive(pid: number): boolean {
  const [state = ""] = statOf(pid);
  return state !== "" && state !== "Z" && state !== "X";
}
