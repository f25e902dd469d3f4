/** Cancel: the record says that nobody wants the answer of the attempt that is under way. */
import { Fault } from "../../rewards/faults.ts";
import { expressionOver } from "../slot-row.ts";
import { writeRow } from "../slots/write.ts";
import {
  type BatchRecord,
  batchColumns,
  batchKeyOf,
  isForgotten,
  isRunning,
  type RecordContext,
  readBatch,
} from "./batch-record.ts";

const isAsWeReadIt = "#fence = :seenFence";

export const cancelBatchExpression = expressionOver(batchColumns, {
  name: "cancel batch",
  update: "SET #state = :cancelled",
  clauses: [isAsWeReadIt, isRunning],
});

/** An attempt may begin anew each time that one was seen; whoever does so many times does not want it cancelled. */
const mostTries = 5;

/**
 * Cancels a batch that runs, and tells what it is now, and of which attempt that is said; null when nothing is known of it.
 * Throws the table's faults.
 */
export async function markCancelled(
  ctx: RecordContext,
  batchId: string,
): Promise<Pick<BatchRecord, "state" | "attemptNumber"> | null> {
  for (let tries = 0; tries < mostTries; tries += 1) {
    const seen = await readBatch(ctx, batchId);
    if (seen === null || isForgotten(seen, ctx.clock.nowMs())) return null;
    if (seen.state !== "running") return seen;
    const values = { ":running": "running", ":cancelled": "cancelled", ":seenFence": seen.fence };
    const isDone = await writeRow(
      ctx.table,
      batchKeyOf(batchId),
      cancelBatchExpression,
      values,
      () => false, // the next look tells
    );
    if (isDone !== null) return { state: "cancelled", attemptNumber: seen.attemptNumber };
  }
  throw new Fault(
    "store_unavailable",
    "The batch was begun anew each time that it was cancelled. Ask again.",
  );
}
