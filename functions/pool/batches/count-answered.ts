/**
 * Counting an answered batch whose attempt may have died before it could: whoever finds the answer does it.
 *
 * The entry's place is in the record, so all who find it write the same row. Once the sweep has passed that place nothing
 * that is written there counts: then the record names another one, by a write that one of them wins. What the attempt
 * cost may have been folded already, and is not counted again. A run that is finished takes nothing more.
 */
import { type BatchEntry, findEntry, newPlace, writeBatchEntry } from "../runs/ledger.ts";
import { getRunRow } from "../runs/read.ts";
import { expressionOver } from "../slot-row.ts";
import { writeRow } from "../slots/write.ts";
import { type BatchRecord, batchColumns, batchKeyOf, type RecordContext } from "./batch-record.ts";

const isAsWeReadIt = "#entry = :seenEntry";

export const moveEntryExpression = expressionOver(batchColumns, {
  name: "move entry of batch",
  update: "SET #entry = :entry",
  clauses: [isAsWeReadIt], // which says whose it is, too: an entry's id names its attempt
});

/** Throws the table's faults. */
export async function countAnswered(ctx: RecordContext, batchId: string, seen: BatchRecord): Promise<void> {
  if (seen.entry === undefined) return;
  const { at, note } = JSON.parse(seen.entry) as BatchEntry;
  const written = await findEntry(ctx, at);
  if (written === "result") return;
  const run = await getRunRow(ctx, at.runId);
  if (run === null || run.finishedAtMs !== undefined) return;
  if (at.place > run.foldedUntil) return writeBatchEntry(ctx, at, note);
  const { busyMs, reportedMs = busyMs } = note;
  const uncounted = written === "cost" ? { ...note, workersCreated: 0, busyMs: 0, reportedMs } : note;
  const moved: BatchEntry = { at: newPlace(ctx, run, at.id), note: uncounted };
  const values = { ":seenEntry": seen.entry, ":entry": JSON.stringify(moved) };
  const isOurs = (row: Readonly<Record<string, unknown>>) => row[batchColumns.entry] === values[":entry"];
  const row = await writeRow(ctx.table, batchKeyOf(batchId), moveEntryExpression, values, isOurs);
  if (row !== null) await writeBatchEntry(ctx, moved.at, moved.note); // else another counts it
}
