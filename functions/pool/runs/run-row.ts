/**
 * A run's row: a trainer's job, from register to finish, and what it has cost, but for what its ledger still has.
 *
 * A run lives as long as somebody speaks of it: a heartbeat or a batch keeps it alive for `runLifeMs`. Nothing has to
 * be written for it to expire, so a trainer that vanishes needs nobody to notice. One that speaks again later is alive
 * again, because its record is kept; only `finish` ends a run for good.
 *
 * Runs are a partition of their own: waiting handlers read the slots several times a second, and runs seldom.
 */
import type { VerdictKind } from "../../grading/verdict.ts";
import { Fault } from "../../rewards/faults.ts";
import type { RowKey, StoredRow, UpdateExpression } from "../ports.ts";
import { expressionOver } from "../slot-row.ts";

/** How long a run lives without a heartbeat or a batch. */
export const runLifeMs = 300_000;
/** How long its record is kept after the last sign of life. */
const recordLifeS = 7 * 86_400;

/** The run that batches count for which name none. It is there without being registered. */
export const defaultRunId = "default";
/** Workers of a run that doesn't say how many it wants. */
export const defaultRunWorkers = 2;

export const verdictKinds = [
  "passed",
  "wrong_output",
  "runtime_error",
  "signaled",
  "time_limit",
  "memory_limit",
  "output_limit",
] as const satisfies readonly VerdictKind[];

export interface RunTotals {
  readonly batches: number;
  readonly samples: number;
  readonly verdicts: Readonly<Record<VerdictKind, number>>;
  readonly faults: number;
  readonly retries: number;
  readonly workersCreated: number;
  /** Time in which the run's batches held workers. */
  readonly busyMs: number;
  /** Its share of the time in which workers were idle. */
  readonly idleMs: number;
  /** Time in which sandboxes that were created for it were not ready yet, or came to nothing. */
  readonly startMs: number;
}

export type RunState = "active" | "finished" | "expired";

export interface RunRow {
  readonly runId: string;
  readonly name: string;
  /** Workers that the run wants at most. */
  readonly workers: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly registeredAtMs: number;
  /** The last heartbeat, batch or registration. */
  readonly beatAtMs: number;
  readonly finishedAtMs?: number;
  /** From when the record may be deleted, in seconds since 1970. */
  readonly recordUntilS: number;
  readonly totals: RunTotals;
  /** Worker time of all kinds, and how much of it answers of the run's batches have told. */
  readonly spentMs: number;
  readonly reportedMs: number;
  /** The last place of the run's ledger that the totals have. */
  readonly foldedUntil: number;
  /** What containers of a former version have added to the totals: the last number that came through, by lane. */
  readonly lanes: Readonly<Record<string, number>>;
}

/** Stored column of each word. */
export const runColumns = {
  name: "name",
  workers: "want",
  metadata: "meta",
  registeredAtMs: "reg",
  beatAtMs: "beat",
  finishedAtMs: "fin",
  owner: "own",
  recordUntilS: "expiresAtS",
  batches: "n",
  samples: "smp",
  faults: "flt",
  retries: "rtr",
  workersCreated: "mk",
  busyMs: "busy",
  idleMs: "idle",
  idleUntilMs: "idleTo",
  startMs: "start",
  spentMs: "sp",
  reportedMs: "spl",
  reporter: "rby",
  foldedUntil: "led",
  passed: "v1",
  wrong_output: "v2",
  runtime_error: "v3",
  signaled: "v4",
  time_limit: "v5",
  memory_limit: "v6",
  output_limit: "v7",
} as const;

/** Columns that begin with this are lanes; `prune-lanes.ts` says what for. */
export const lanePrefix = "~";

export const runPartition = "runs";
export const runPrefix = "R#";

export function runKey(runId: string): RowKey {
  return { pk: runPartition, sk: `${runPrefix}${runId}` };
}

/** An update of a run. */
export function runExpression(
  spoken: Pick<UpdateExpression, "name" | "update" | "clauses">,
  moreColumns: Readonly<Record<string, string>> = {},
): UpdateExpression {
  return expressionOver({ ...runColumns, ...moreColumns }, spoken);
}

/** Clauses that several verbs share. */
export const isRegistered = "attribute_exists(#registeredAtMs)";
export const isNotFinished = "attribute_not_exists(#finishedAtMs)";

/** Until when a record written now is kept. */
export function recordUntilS(nowMs: number): number {
  return Math.ceil(nowMs / 1_000) + recordLifeS;
}

/** Of another partition's row, or a record whose time is over though nobody has deleted it: null. */
export function readRunRow(stored: StoredRow | undefined, nowMs: number): RunRow | null {
  const sk = String(stored?.sk ?? "");
  if (stored === undefined || !sk.startsWith(runPrefix)) return null;
  const workers = stored[runColumns.workers];
  const beatAtMs = stored[runColumns.beatAtMs];
  if (typeof workers !== "number" || typeof beatAtMs !== "number") {
    throw new Fault("misconfigured", `the table's row ${sk} is not a run that this version understands`);
  }
  const count = countIn(stored);
  const finishedAtMs = stored[runColumns.finishedAtMs];
  const run: RunRow = {
    runId: sk.slice(runPrefix.length),
    name: String(stored[runColumns.name] ?? ""),
    workers,
    metadata: readMetadata(stored[runColumns.metadata]),
    registeredAtMs: count("registeredAtMs"),
    beatAtMs,
    ...(typeof finishedAtMs === "number" ? { finishedAtMs } : {}),
    recordUntilS: count("recordUntilS"),
    totals: readTotals(stored),
    spentMs: count("spentMs"),
    reportedMs: count("reportedMs"),
    foldedUntil: count("foldedUntil"),
    lanes: readLanes(stored),
  };
  return run.recordUntilS * 1_000 > nowMs ? run : null;
}

function countIn(stored: StoredRow) {
  return (word: keyof typeof runColumns): number => {
    const value = stored[runColumns[word]];
    return typeof value === "number" ? value : 0;
  };
}

/** The totals that a row holds, of a run or of its ledger. */
export function readTotals(stored: StoredRow): RunTotals {
  const count = countIn(stored);
  return {
    batches: count("batches"),
    samples: count("samples"),
    verdicts: {
      passed: count("passed"),
      wrong_output: count("wrong_output"),
      runtime_error: count("runtime_error"),
      signaled: count("signaled"),
      time_limit: count("time_limit"),
      memory_limit: count("memory_limit"),
      output_limit: count("output_limit"),
    },
    faults: count("faults"),
    retries: count("retries"),
    workersCreated: count("workersCreated"),
    busyMs: count("busyMs"),
    idleMs: count("idleMs"),
    startMs: count("startMs"),
  };
}

function readLanes(stored: StoredRow): Record<string, number> {
  const lanes: Record<string, number> = {};
  for (const column in stored) {
    const value = column.startsWith(lanePrefix) ? stored[column] : undefined;
    if (typeof value === "number") lanes[column] = value;
  }
  return lanes;
}

function readMetadata(text: unknown): Record<string, string> {
  return typeof text === "string" ? (JSON.parse(text) as Record<string, string>) : {};
}

/** When the run expires unless somebody speaks of it; for a finished one, when it was finished. */
export function runExpiresAtMs(run: RunRow): number {
  return run.finishedAtMs ?? run.beatAtMs + runLifeMs;
}

export function runState(run: RunRow, nowMs: number): RunState {
  if (run.finishedAtMs !== undefined) return "finished";
  return runExpiresAtMs(run) > nowMs ? "active" : "expired";
}

/** The runs that want workers now. */
export function liveRuns(runs: readonly RunRow[], nowMs: number): RunRow[] {
  return runs.filter((run) => runState(run, nowMs) === "active");
}

/** How many workers the pool should have: what its live runs want together, as far as there are slots. */
export function targetWorkers(runs: readonly RunRow[], slots: number, nowMs: number): number {
  const wanted = liveRuns(runs, nowMs).reduce((sum, run) => sum + run.workers, 0);
  return Math.min(slots, wanted);
}
