/**
 * A sign that a run waits with no worker at all, for handlers that hold several.
 *
 * Nobody is obliged to see it: a sign that gets lost, or that outlives the wait, costs a moment of one worker. It is a
 * row of the pool's partition, so whoever looks at the pool sees it for nothing.
 */
import type { RowKey, StoredRow } from "./ports.ts";
import { expressionOver, poolPartition } from "./slot-row.ts";
import type { SlotContext } from "./slots/write.ts";

/** A run that has waited for so long says so. */
export const waitsPatientlyMs = 3_000;
/** It says so again after this, and is believed for a little longer. */
export const signEveryMs = 8_000;
const believedMs = 10_000;

const prefix = "W#";
const columns = { waitsUntilMs: "wu", recordUntilS: "expiresAtS" };

/** Absolute in all it sets, so that it may be applied twice and needs no condition. */
export const signExpression = expressionOver(columns, {
  name: "sign of waiting",
  update: "SET #waitsUntilMs = :waitsUntilMs, #recordUntilS = :recordUntilS",
  clauses: [],
});

export interface WaitingRun {
  readonly runTag: string;
  readonly waitsUntilMs: number;
}

/** Says that the run waits. Throws the table's faults. */
export async function signWaiting({ table, clock }: SlotContext, runTag: string): Promise<void> {
  const waitsUntilMs = clock.nowMs() + believedMs;
  const key: RowKey = { pk: poolPartition, sk: `${prefix}${runTag}` };
  const recordUntilS = Math.ceil(waitsUntilMs / 1_000) + 3_600;
  await table.update(key, signExpression, { ":waitsUntilMs": waitsUntilMs, ":recordUntilS": recordUntilS });
}

/** The run of a stored row that is such a sign; null for the partition's other rows. */
export function readWaiting(stored: StoredRow): WaitingRun | null {
  const sk = String(stored.sk);
  const waitsUntilMs = stored[columns.waitsUntilMs];
  if (!sk.startsWith(prefix) || typeof waitsUntilMs !== "number") return null;
  return { runTag: sk.slice(prefix.length), waitsUntilMs };
}
