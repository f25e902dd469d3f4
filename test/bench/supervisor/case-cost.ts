/** What a case costs each kind of the supervisor's processes. */
import { readFileSync } from "node:fs";
import { listProcessTree } from "../process-tree.ts";
import type { SupervisorProcess } from "./supervisor-process.ts";

export interface CaseCost {
  /** Milliseconds of CPU, of all processes. */
  readonly all: number;
  readonly supervisor: number;
  readonly zygote: number;
  readonly "case's own": number;
  /** Pages that a case's processes copied, cleared or mapped. */
  readonly page_faults: number;
  /** From the first case's start to the last one's end. */
  readonly wall_ms: number;
}

const ticksPerSecond = 100;

interface Counters {
  ownMs: number;
  childrenMs: number;
  childrenFaults: number;
}

/** Runs `cases` cases of a trivial program. */
export async function measureCost(supervisor: SupervisorProcess, cases: number): Promise<CaseCost> {
  const zygotes = listProcessTree(supervisor.pid).filter(isZygote);
  const before = { supervisor: read(supervisor.pid), zygotes: zygotes.map(read) };
  const startedAtMs = performance.now();
  await supervisor.execute(1, cases);
  const wallMs = performance.now() - startedAtMs;
  const after = { supervisor: read(supervisor.pid), zygotes: zygotes.map(read) };
  const grown = (name: keyof Counters) =>
    after.zygotes.reduce(
      (sum, counters, index) => sum + counters[name] - (before.zygotes[index]?.[name] ?? 0),
      0,
    );
  const own = after.supervisor.ownMs - before.supervisor.ownMs;
  return {
    all: (own + grown("ownMs") + grown("childrenMs")) / cases,
    supervisor: own / cases,
    zygote: grown("ownMs") / cases,
    "case's own": grown("childrenMs") / cases,
    page_faults: grown("childrenFaults") / cases,
    wall_ms: wallMs / cases,
  };
}

export function meanCost(rounds: readonly CaseCost[]): CaseCost {
  const names = Object.keys(rounds[0] ?? {}) as (keyof CaseCost)[];
  const mean = (name: keyof CaseCost) => rounds.reduce((sum, round) => sum + round[name], 0) / rounds.length;
  return Object.fromEntries(
    names.map((name) => [name, Number(mean(name).toPrecision(3))]),
  ) as unknown as CaseCost;
}

/** A zygote leads its own pid namespace, and has reaped what it forked. */
function isZygote(pid: number): boolean {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return (
    /^NSpid:\s+\d+\s+1$/m.test(status) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("zygote.py")
  );
}

function read(pid: number): Counters {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const at = (index: number) => fields[index] ?? Number.NaN;
  const msOf = (ticks: number) => (ticks / ticksPerSecond) * 1000;
  return { ownMs: msOf(at(11) + at(12)), childrenMs: msOf(at(13) + at(14)), childrenFaults: at(8) };
}
