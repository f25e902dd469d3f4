/**
 * Finish: the run wants nothing any more, for good.
 *
 * Only the word; `sweep/finish-run.ts` ends its workers. Finishing again changes nothing, not even the time.
 */
import { type SlotContext, writeRow } from "../slots/write.ts";
import { isRegistered, type RunRow, readRunRow, recordUntilS, runExpression, runKey } from "./run-row.ts";

export const finishExpression = runExpression({
  name: "finish run",
  update: "SET #finishedAtMs = if_not_exists(#finishedAtMs, :nowMs), #recordUntilS = :recordUntilS",
  clauses: [isRegistered],
});

/** The finished run; null when there is none of that id. Throws the table's faults. */
export async function markFinished(ctx: SlotContext, runId: string): Promise<RunRow | null> {
  const nowMs = ctx.clock.nowMs();
  const values = { ":nowMs": nowMs, ":recordUntilS": recordUntilS(nowMs) };
  const stored = await writeRow(ctx.table, runKey(runId), finishExpression, values, () => false);
  return stored === null ? null : readRunRow(stored, nowMs);
}
