/**
 * Settle a batch: before what it adds to its run is written, as an entry of the run's ledger, the run is looked at.
 *
 * It may be finished; and the worker time that no answer has told yet is told by this one. Such time comes of idle shares, of starts of workers and of attempts that failed, once in a while, so claiming it
 * is seldom a write; the ordinary batch reads one row and writes one.
 */
import { type SlotContext, writeRow } from "../slots/write.ts";
import { enterRun } from "./enter.ts";
import { type LedgerPlace, newPlace } from "./ledger.ts";
import type { RunRefusal } from "./read.ts";
import { isNotFinished, isRegistered, type RunRow, runColumns, runExpression, runKey } from "./run-row.ts";

export type PlaceFound =
  | { readonly kind: "found"; readonly run: RunRow; readonly at: LedgerPlace }
  | RunRefusal;

export type Settlement =
  | {
      readonly kind: "settled";
      /** Where the batch's entry is to be. */
      readonly at: LedgerPlace;
      /** Worker time, idle time too, since the run's batch before this one. */
      readonly sincePreviousMs: number;
    }
  | RunRefusal;

const wasNeverReported = "attribute_not_exists(#reportedMs)";
const isAsWeReadIt = "#reportedMs = :seenMs";

export const claimUnreportedExpression = runExpression({
  name: "claim unreported time",
  update: "SET #reportedMs = :reportedMs, #reporter = :owner",
  clauses: [isRegistered, isNotFinished, `(${wasNeverReported} OR ${isAsWeReadIt})`],
});

/** The place of an entry for the run, which is alive then; the default run is woken. Throws the table's faults. */
export async function findPlace(ctx: SlotContext, runId: string, id: string): Promise<PlaceFound> {
  const entry = await enterRun(ctx, runId);
  if (entry.kind !== "entered") return entry;
  return { kind: "found", run: entry.run, at: newPlace(ctx, entry.run, id) };
}

/** The same for a batch that was graded, and whose own worker time was `ownMs`; its place may have been found before. */
export async function settleBatch(
  ctx: SlotContext,
  runId: string,
  attemptId: string,
  ownMs: number,
  place: Promise<PlaceFound> = findPlace(ctx, runId, attemptId),
): Promise<Settlement> {
  const found = await place;
  if (found.kind !== "found") return found;
  const sincePreviousMs = Math.round(ownMs) + (await claimUnreported(ctx, found.run));
  return { kind: "settled", at: found.at, sincePreviousMs };
}

/** Time that has been spent and told by nobody; one of those who ask at once gets it. */
async function claimUnreported(ctx: SlotContext, run: RunRow): Promise<number> {
  const unreportedMs = run.spentMs - run.reportedMs;
  if (unreportedMs <= 0) return 0;
  const owner = ctx.newId();
  const values = { ":reportedMs": run.spentMs, ":seenMs": run.reportedMs, ":owner": owner };
  const isOurs = (row: Readonly<Record<string, unknown>>) => row[runColumns.reporter] === owner;
  const claimed = await writeRow(ctx.table, runKey(run.runId), claimUnreportedExpression, values, isOurs);
  return claimed === null ? 0 : unreportedMs;
}
