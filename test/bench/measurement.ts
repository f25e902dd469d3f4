import { readFileSync } from "node:fs";
import type { Contestant } from "./contestant.ts";
import type { Load } from "./loads.ts";
import { listProcessTree, readTreeCpuSeconds } from "./process-tree.ts";

export interface Round {
  readonly wallSeconds: number;
  /** Of the server with all that it started, and of the client. */
  readonly cpuSeconds: number;
  /** The most that the server's processes held together, shared pages counted once. */
  readonly peakMib: number;
}

const lookEveryMs = 200;

/** Lets a contestant grade one batch. Throws when a reward is not what is known of its program. */
export async function measureRound(
  contestant: Contestant,
  { name, make, expected }: Load,
  round: number,
  serverPid: number,
): Promise<Round> {
  const samples = make(round);
  let peakMib = readTreeMib(serverPid);
  const looks = setInterval(() => {
    peakMib = Math.max(peakMib, readTreeMib(serverPid));
  }, lookEveryMs);
  const cpuBefore = readTreeCpuSeconds(serverPid);
  const ownBefore = process.cpuUsage();
  const startedAt = performance.now();
  const rewards = await contestant.grade(samples).finally(() => clearInterval(looks));
  const wallSeconds = (performance.now() - startedAt) / 1000;
  const own = process.cpuUsage(ownBefore);
  const cpuSeconds = readTreeCpuSeconds(serverPid) - cpuBefore + (own.user + own.system) / 1e6;
  const wrong = rewards.findIndex((reward, index) => reward !== expected[index]);
  if (wrong >= 0) {
    const told = `${contestant.name} gave ${rewards[wrong]} to program ${wrong} of «${name}»`;
    throw new Error(`${told}, whose reward is ${expected[wrong]}`);
  }
  return { wallSeconds, cpuSeconds, peakMib };
}

/** Proportional set sizes of a process tree. */
function readTreeMib(pid: number): number {
  let kib = 0;
  for (const member of listProcessTree(pid)) {
    try {
      const rollup = readFileSync(`/proc/${member}/smaps_rollup`, "utf8");
      kib += Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0);
    } catch {
      // it ended while we looked
    }
  }
  return kib / 1024;
}
