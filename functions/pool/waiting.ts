/**
 * Signs that a batch waits with no worker at all, for handlers that hold some.
 *
 * A run has one, of its batch that has waited longest: whoever finds an older one there leaves it. It is a row of the
 * pool's partition, so whoever looks at the pool sees it for nothing, and there are no more of them than runs. Nobody is
 * obliged to see it: a sign that gets lost, or that outlives the wait, costs a moment of one worker.
 */
import type { RowKey, StoredRow } from "./ports.ts";
import { expressionOver, poolPartition } from "./slot-row.ts";
import type { Holder, SlotContext } from "./slots/write.ts";

/** A batch that has waited for so long says so. */
export const waitsPatientlyMs = 1_500;
/** It says so again after this, and is believed for a little longer: should it die, workers wait for it that long. */
const signEveryMs = 4_000;
const believedMs = 6_000;
/** A handler of the version before said it of a run only, after 3 s, and was believed for 10 s. */
const formerlyMs = 13_000;

const prefix = "W#";
const columns = {
  waitsUntilMs: "wu",
  sinceMs: "ws",
  batchTag: "wb",
  runIsFull: "wf",
  recordUntilS: "expiresAtS",
};

/** Absolute in all it sets, so that it may be applied twice and needs no condition. */
export const signExpression = expressionOver(columns, {
  name: "sign of waiting",
  update:
    "SET #waitsUntilMs = :waitsUntilMs, #sinceMs = :sinceMs, #batchTag = :batchTag, #runIsFull = :runIsFull, " +
    "#recordUntilS = :recordUntilS",
  clauses: [],
});

export interface WaitingBatch {
  readonly runTag: string;
  /** Null where only the run is known: from a handler of the version before. */
  readonly batchTag: string | null;
  readonly sinceMs: number;
  readonly waitsUntilMs: number;
  /** Whether its run holds all the workers that it may: only one of those is of use to it. */
  readonly runIsFull: boolean;
}

/** Says that the batch waits. Throws the table's faults. */
export async function signWaiting(
  { table, clock }: SlotContext,
  { runTag, batchTag }: Holder,
  wait: Pick<WaitingBatch, "sinceMs" | "runIsFull">,
): Promise<void> {
  const waitsUntilMs = clock.nowMs() + believedMs;
  const key: RowKey = { pk: poolPartition, sk: `${prefix}${runTag}` };
  await table.update(key, signExpression, {
    ":waitsUntilMs": waitsUntilMs,
    ":sinceMs": wait.sinceMs,
    ":batchTag": batchTag,
    ":runIsFull": wait.runIsFull,
    ":recordUntilS": Math.ceil(waitsUntilMs / 1_000) + 3_600,
  });
}

/** Whether the sign counts now: until its time, and not before a sign of that time can have been given. */
export function isBelieved({ waitsUntilMs }: WaitingBatch, nowMs: number, graceMs: number): boolean {
  return waitsUntilMs > nowMs && waitsUntilMs <= nowMs + formerlyMs + graceMs;
}

/** Whether the batch should sign, over what its run's row says. `present` is null where nobody is believed. */
export function isToSign(
  present: WaitingBatch | null,
  own: Pick<WaitingBatch, "batchTag" | "sinceMs" | "runIsFull">,
  nowMs: number,
): boolean {
  if (present === null) return true;
  if (present.batchTag !== own.batchTag) return own.sinceMs < present.sinceMs;
  return present.runIsFull !== own.runIsFull || present.waitsUntilMs <= nowMs + believedMs - signEveryMs;
}

/** The batch of a stored row that is such a sign; null for the partition's other rows. */
export function readWaiting(stored: StoredRow): WaitingBatch | null {
  const sk = String(stored.sk);
  const waitsUntilMs = stored[columns.waitsUntilMs];
  if (!sk.startsWith(prefix) || typeof waitsUntilMs !== "number") return null;
  const sinceMs = stored[columns.sinceMs];
  const batchTag = stored[columns.batchTag];
  return {
    runTag: sk.slice(prefix.length),
    batchTag: typeof batchTag === "string" ? batchTag : null,
    sinceMs: typeof sinceMs === "number" ? sinceMs : waitsUntilMs - formerlyMs,
    waitsUntilMs,
    runIsFull: stored[columns.runIsFull] === true,
  };
}
