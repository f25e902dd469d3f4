/** Who watches a simulated world: what must never happen, what led to it, and what did happen, counted. */
import type { SimulatedTime } from "./simulated-time.ts";

export interface Violation {
  readonly what: string;
  readonly world: string;
  readonly seed: number;
  readonly atS: number;
  /** The last steps before it, oldest first. */
  readonly trace: readonly string[];
}

export interface Counts {
  batches: number;
  leases: number;
  takenOver: number;
  chunksLost: number;
  crashes: number;
  freezes: number;
  lostAnswers: number;
  lateWrites: number;
  tableFaults: number;
  created: number;
  createsRefused: number;
  createsAmbiguous: number;
  createsUnproved: number;
  lateLandings: number;
  sandboxDeaths: number;
  listFaults: number;
  sweeps: number;
  runsFinished: number;
  runsVanished: number;
  batchesCancelled: number;
  answersRepeated: number;
  attemptsOvertaken: number;
}

export function noCounts(): Counts {
  return {
    batches: 0,
    leases: 0,
    takenOver: 0,
    chunksLost: 0,
    crashes: 0,
    freezes: 0,
    lostAnswers: 0,
    lateWrites: 0,
    tableFaults: 0,
    created: 0,
    createsRefused: 0,
    createsAmbiguous: 0,
    createsUnproved: 0,
    lateLandings: 0,
    sandboxDeaths: 0,
    listFaults: 0,
    sweeps: 0,
    runsFinished: 0,
    runsVanished: 0,
    batchesCancelled: 0,
    answersRepeated: 0,
    attemptsOvertaken: 0,
  };
}

export interface Watch {
  readonly counts: Counts;
  readonly violations: Violation[];
  /** Remembers a step for traces. */
  note(who: string, what: string): void;
  /** Once of each kind in a world. */
  violation(what: string, detail?: string): void;
}

const traceLength = 60;

export function createWatch(time: SimulatedTime, world: string, seed: number): Watch {
  const startMs = time.nowMs();
  const atMs = new Float64Array(traceLength);
  const who: string[] = [];
  const what: string[] = [];
  let steps = 0;

  function trace(): string[] {
    const length = Math.min(steps, traceLength);
    return Array.from({ length }, (_, index) => {
      const at = (steps - length + index) % traceLength;
      return `${(((atMs[at] ?? 0) - startMs) / 1_000).toFixed(3)} ${who[at]}: ${what[at]}`;
    });
  }

  const watch: Watch = {
    counts: noCounts(),
    violations: [],
    note(name, step) {
      const at = steps++ % traceLength;
      atMs[at] = time.nowMs();
      who[at] = name;
      what[at] = step;
    },
    violation(kind, detail = "") {
      if (watch.violations.some((known) => known.what === kind)) return;
      watch.note("VIOLATION", `${kind} ${detail}`);
      const atS = Math.round((time.nowMs() - startMs) / 1_000);
      watch.violations.push({ what: kind, world, seed, atS, trace: trace() });
    },
  };
  return watch;
}
