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
  /** Incidents, by what they are. */
  providerAway: number;
  tableAway: number;
  tableThrottled: number;
  edgePartitioned: number;
  workersUnreachable: number;
  workersDied: number;
  killsFail: number;
  killsUnheard: number;
  goneUntrue: number;
  landingsLate: number;
  clocksWrong: number;
  /** Requests to workers that were alive and did not answer. */
  unreached: number;
  /** Answers of the provider's that were not true. */
  untruths: number;
  killsDoneUnheard: number;
  landingsAfterTimeout: number;
  landingsAfterClaim: number;
  /** Clocks that went wrong. */
  wrongClocks: number;
  /** Chunks that were cut, their worker's life being over before they were. */
  livesEnded: number;
  deploys: number;
  /** Batches that had to be served, the last incident being over for long enough. */
  batchesOwed: number;
  /** Runs whose totals were compared with what was told. */
  totalsChecked: number;
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
    providerAway: 0,
    tableAway: 0,
    tableThrottled: 0,
    edgePartitioned: 0,
    workersUnreachable: 0,
    workersDied: 0,
    killsFail: 0,
    killsUnheard: 0,
    goneUntrue: 0,
    landingsLate: 0,
    clocksWrong: 0,
    unreached: 0,
    untruths: 0,
    killsDoneUnheard: 0,
    landingsAfterTimeout: 0,
    landingsAfterClaim: 0,
    wrongClocks: 0,
    livesEnded: 0,
    deploys: 0,
    batchesOwed: 0,
    totalsChecked: 0,
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
