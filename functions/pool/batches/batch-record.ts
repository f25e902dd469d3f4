/**
 * The record of a batch that its client gave a key: how whoever holds workers for it learns that it was cancelled.
 *
 *   begin ──▶ running ── end ──▶ over
 *                └───── cancel ──▶ cancelled
 *
 * A batch that is sent again under its key begins anew, as another attempt; the one before it has nobody left who
 * waits for its answer. Batches without a key have no record: nobody could name them.
 */
import type { RowKey, StoredRow } from "../ports.ts";
import { expressionOver } from "../slot-row.ts";
import { type SlotContext, writeRow } from "../slots/write.ts";

/** How long a record is kept. */
const recordLifeS = 3_600;

export type BatchState = "running" | "over" | "cancelled";

const columns = { state: "st", attempt: "own", recordUntilS: "expiresAtS" };

const isAnotherAttempt = "(attribute_not_exists(#attempt) OR #attempt <> :attempt)";
const isThisAttempt = "#attempt = :attempt";
const isRunning = "#state = :running";

/** A repeated write that comes late must not undo a cancellation: an attempt begins once. */
export const beginBatchExpression = expressionOver(columns, {
  name: "begin batch",
  update: "SET #state = :running, #attempt = :attempt, #recordUntilS = :recordUntilS",
  clauses: [isAnotherAttempt],
});

export const endBatchExpression = expressionOver(columns, {
  name: "end batch",
  update: "SET #state = :over",
  clauses: [isThisAttempt, isRunning],
});

export const cancelBatchExpression = expressionOver(columns, {
  name: "cancel batch",
  update: "SET #state = :cancelled",
  clauses: [isRunning],
});

export type RecordContext = Pick<SlotContext, "table" | "clock">;

function batchKey(batchId: string): RowKey {
  return { pk: `B#${batchId}`, sk: "B" };
}

/** Notes that an attempt begins. Throws the table's faults. */
export async function beginBatch(ctx: RecordContext, batchId: string, attempt: string): Promise<void> {
  const recordUntilS = Math.ceil(ctx.clock.nowMs() / 1_000) + recordLifeS;
  const values = { ":running": "running", ":attempt": attempt, ":recordUntilS": recordUntilS };
  await writeRow(ctx.table, batchKey(batchId), beginBatchExpression, values, () => true);
}

/** Notes that an attempt is over, unless it was cancelled or replaced. Throws the table's faults. */
export async function endBatch(ctx: RecordContext, batchId: string, attempt: string): Promise<void> {
  const values = { ":over": "over", ":running": "running", ":attempt": attempt };
  await writeRow(ctx.table, batchKey(batchId), endBatchExpression, values, () => true);
}

/** Cancels a batch that runs, and tells what it is now; null when nothing is known of it. */
export async function markCancelled(ctx: RecordContext, batchId: string): Promise<BatchState | null> {
  const before = await readBatch(ctx, batchId);
  if (before === null || before.state !== "running") return before?.state ?? null;
  const values = { ":running": "running", ":cancelled": "cancelled" };
  await writeRow(ctx.table, batchKey(batchId), cancelBatchExpression, values, () => true);
  return (await readBatch(ctx, batchId))?.state ?? null;
}

/** Whether nobody wants this attempt's answer any more. Throws the table's faults. */
export async function isCancelled(ctx: RecordContext, batchId: string, attempt: string): Promise<boolean> {
  const record = await readBatch(ctx, batchId);
  return record !== null && (record.state === "cancelled" || record.attempt !== attempt);
}

async function readBatch({ table, clock }: RecordContext, batchId: string) {
  const row = await table.get(batchKey(batchId));
  return row === undefined || Number(row[columns.recordUntilS]) * 1_000 <= clock.nowMs()
    ? null
    : readRow(row);
}

function readRow(row: StoredRow): { readonly state: BatchState; readonly attempt: string } {
  return { state: row[columns.state] as BatchState, attempt: String(row[columns.attempt]) };
}
