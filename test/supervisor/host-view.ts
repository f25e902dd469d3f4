/** What the host's own /proc says of a supervisor and of everything it started: the other side's word is not taken. */
import { readdirSync, readFileSync } from "node:fs";
import os from "node:os";

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function isRunning(pid: number): boolean {
  const stat = readOrNothing(`/proc/${pid}/stat`);
  const state = stat.slice(stat.lastIndexOf(")") + 2, stat.lastIndexOf(")") + 3);
  return state !== "" && state !== "Z" && state !== "X";
}

function allPids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** The direct children of a process. */
export function childrenOf(pid: number): number[] {
  let tasks: string[] = [];
  try {
    tasks = readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
  return tasks.flatMap((task) =>
    readOrNothing(`/proc/${pid}/task/${task}/children`).split(" ").filter(Boolean).map(Number),
  );
}

/** The process and all its living descendants, in any pid namespace. */
export function processTree(root: number): number[] {
  const found = isRunning(root) ? [root] : [];
  for (const pid of found) found.push(...childrenOf(pid).filter(isRunning));
  return found;
}

/** Living processes whose command line holds `text`, wherever they are in the tree. */
export function processesByCommandLine(text: string): number[] {
  return allPids().filter((pid) => isRunning(pid) && readOrNothing(`/proc/${pid}/cmdline`).includes(text));
}

/** Living processes of one name: a program names itself by prctl, the host reads it in `comm`. */
export function processesByName(name: string): number[] {
  return allPids().filter((pid) => readOrNothing(`/proc/${pid}/comm`).trim() === name && isRunning(pid));
}

export function livingOf(pids: readonly number[]): number[] {
  return pids.filter(isRunning);
}

export function openDescriptors(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`);
}

/** Mount points of this process's own namespace. */
export function hostMounts(): string[] {
  return readOrNothing("/proc/self/mountinfo")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "");
}

/** Abstract Unix sockets of the host's network namespace. */
export function hostAbstractSockets(): string[] {
  return readOrNothing("/proc/net/unix")
    .split("\n")
    .map((line) => line.split(/\s+/)[7] ?? "")
    .filter((name) => name.startsWith("@"));
}

/** Control groups that this product names after `pid`, at any depth that it could have made them. */
export function controlGroupsOf(pid: number): string[] {
  const found: string[] = [];
  const look = (path: string, depth: number): void => {
    for (const entry of entriesOf(path)) {
      if (entry.startsWith("code-rewards") && entry.includes(String(pid))) found.push(`${path}/${entry}`);
      else if (depth > 0) look(`${path}/${entry}`, depth - 1);
    }
  };
  look("/sys/fs/cgroup", 3);
  return found;
}

function entriesOf(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}

/** The CPUs that this process may use. */
export function allowedCpus(): number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(readOrNothing("/proc/self/status"))?.[1] ?? "0";
  return list.split(",").flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

/**
 * Whether others keep this machine so busy that a program may be starved. Only then may `starved` stand where a test
 * expects a limit.
 */
export function isBusyWithOthers(): boolean {
  return (os.loadavg()[0] ?? 0) > os.availableParallelism() + 0.5;
}

/** Which part of the machine's CPU time is used now, measured over a moment in which this process waits. */
export async function measureBusyShare(forMs: number): Promise<number> {
  const before = readCpuTicks();
  await new Promise((resolve) => setTimeout(resolve, forMs));
  const after = readCpuTicks();
  return (after.busy - before.busy) / Math.max(1, after.all - before.all);
}

function readCpuTicks(): { busy: number; all: number } {
  const [, ...fields] = readFileSync("/proc/stat", "utf8").split("\n", 1)[0]?.split(/\s+/).map(Number) ?? [];
  const all = fields.slice(0, 8).reduce((sum, ticks) => sum + ticks, 0);
  return { busy: all - (fields[3] ?? 0) - (fields[4] ?? 0), all };
}
