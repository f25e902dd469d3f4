/**
 * Note a batch: its sign of life and what it adds to the run's totals, in one write.
 *
 * Adding twice is the danger: the client repeats a write that got no answer. So each write goes through a lane, a
 * column of the run's row that only this container writes, and only one write at a time; it holds the number of the
 * last write that came through, numbers only grow, and the condition asks for a smaller one. However late the first
 * attempt arrives, and whoever wrote in between, it counts once. A container has as many lanes as it ever had writes
 * of one run at once; the sweep removes lanes of containers that are long gone.
 */
import type { VerdictKind } from "../../grading/verdict.ts";
import { Fault } from "../../rewards/faults.ts";
import type { StoredRow, UpdateExpression } from "../ports.ts";
import { type SlotContext, writeRow } from "../slots/write.ts";
import { explainRefusal, type RunRefusal } from "./read.ts";
import {
  defaultRunId,
  defaultRunWorkers,
  isNotFinished,
  isRegistered,
  lanePrefix,
  type RunRow,
  readRunRow,
  recordUntilS,
  runExpression,
  runKey,
  verdictKinds,
} from "./run-row.ts";

/** What one batch adds to its run. */
export interface BatchNote {
  /** 0 for an attempt at a batch that another attempt has: only its cost counts. Default: 1. */
  readonly batches?: 0 | 1;
  readonly samples: number;
  /** Verdicts of test cases, by kind. */
  readonly verdicts: Readonly<Partial<Record<VerdictKind, number>>>;
  /** Samples without a reward. */
  readonly faults: number;
  readonly retries: number;
  readonly workersCreated: number;
  /** Time for which it held workers, added up. */
  readonly busyMs: number;
}

export type BatchNoted =
  | {
      readonly kind: "noted";
      readonly run: RunRow;
      /** Worker time, idle time too, since the run's batch before this one was noted. */
      readonly sincePreviousMs: number;
    }
  | RunRefusal;

export type NoteBatch = (runId: string, note: BatchNote) => Promise<BatchNoted>;

const laneWasNeverUsed = "attribute_not_exists(#lane)";
const laneIsBehind = "#lane < :sequence";
const verdictAdds = verdictKinds.map((kind) => `#${kind} :${kind}`).join(", ");
const noteUpdate =
  "SET #lane = :sequence, #beatAtMs = :nowMs, #recordUntilS = :recordUntilS, " +
  "#spentAtPreviousMs = if_not_exists(#spentAtLastMs, :zero), " +
  "#spentAtLastMs = if_not_exists(#spentMs, :zero) + :busyMs, " +
  "#spentMs = if_not_exists(#spentMs, :zero) + :busyMs";
const noteAdds =
  "ADD #batches :batches, #samples :samples, #faults :faults, #retries :retries, #workersCreated :workersCreated, " +
  `#busyMs :busyMs, ${verdictAdds}`;
const createDefault =
  ", #name = if_not_exists(#name, :name), #workers = if_not_exists(#workers, :workers), " +
  "#registeredAtMs = if_not_exists(#registeredAtMs, :nowMs)";

/** The write of a batch through a lane. */
export function noteExpression(lane: string): UpdateExpression {
  return runExpression(
    {
      name: "note batch",
      update: `${noteUpdate} ${noteAdds}`,
      clauses: [isRegistered, isNotFinished, `(${laneWasNeverUsed} OR ${laneIsBehind})`],
    },
    { lane },
  );
}

/** The same for `default`, which its first batch creates. */
export function noteDefaultExpression(lane: string): UpdateExpression {
  return runExpression(
    {
      name: "note batch of default",
      update: `${noteUpdate}${createDefault} ${noteAdds}`,
      clauses: [isNotFinished, `(${laneWasNeverUsed} OR ${laneIsBehind})`],
    },
    { lane },
  );
}

/**
 * Notes batches; one per container, which owns its lanes.
 *
 * A run that isn't there, or is finished, takes no note. Throws the table's faults: then the batch may be noted or not.
 */
export function createBatchNotes(ctx: SlotContext): NoteBatch {
  const writer = ctx.newId();
  const freeLanes: string[] = [];
  let lanes = 0;
  let sequence = 0;
  return async (runId, note) => {
    const lane = freeLanes.pop() ?? `${lanePrefix}${writer}.${lanes++}`;
    // A time, so that the sweep sees how old a lane is; and never the same one twice.
    sequence = Math.max(sequence + 1, ctx.clock.nowMs());
    try {
      return await writeNote(ctx, runId, note, lane, sequence);
    } finally {
      freeLanes.push(lane);
    }
  };
}

async function writeNote(
  ctx: SlotContext,
  runId: string,
  note: BatchNote,
  lane: string,
  sequence: number,
): Promise<BatchNoted> {
  const isDefault = runId === defaultRunId;
  const values = {
    ...noteValues(note, ctx.clock.nowMs()),
    ":sequence": sequence,
    ...(isDefault
      ? { ":name": defaultRunId, ":workers": Math.min(defaultRunWorkers, ctx.settings.slots) }
      : {}),
  };
  const expression = isDefault ? noteDefaultExpression(lane) : noteExpression(lane);
  const cameThrough = (row: StoredRow) => row[lane] === sequence;
  for (let tries = 0; tries < 2; tries += 1) {
    const stored = await writeRow(ctx.table, runKey(runId), expression, values, cameThrough);
    const run = stored === null ? await explainRefusal(ctx, runId) : readRunRow(stored, ctx.clock.nowMs());
    if (run === null) return { kind: "run_not_found" };
    if ("kind" in run) return run;
    if (stored !== null) return { kind: "noted", run, sincePreviousMs: run.sincePreviousMs };
    // Refused, and now there is no reason for it: the run was registered, or woken, in between.
  }
  throw new Fault("store_unavailable", `the run ${runId} takes no note of a batch`);
}

function noteValues(note: BatchNote, nowMs: number): Record<string, number> {
  const verdicts = verdictKinds.map((kind) => [`:${kind}`, note.verdicts[kind] ?? 0] as const);
  return {
    ...Object.fromEntries(verdicts),
    ":nowMs": nowMs,
    ":recordUntilS": recordUntilS(nowMs),
    ":zero": 0,
    ":batches": note.batches ?? 1,
    ":samples": note.samples,
    ":faults": note.faults,
    ":retries": note.retries,
    ":workersCreated": note.workersCreated,
    ":busyMs": Math.round(note.busyMs),
  };
}
