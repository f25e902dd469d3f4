/**
 * Heartbeat: the run lives for another `runLifeMs`; one that had expired lives again.
 *
 * A clock that is slow takes no life from a run: a sign that is not newer than the last one changes nothing.
 */
import { type SlotContext, writeRow } from "../slots/write.ts";
import { explainRefusal, type RunRefusal } from "./read.ts";
import { isNotFinished, type RunRow, readRunRow, recordUntilS, runExpression, runKey } from "./run-row.ts";

/** Also says that there is a run. */
const isNewer = "#beatAtMs < :nowMs";

export const heartbeatExpression = runExpression({
  name: "beat run",
  update: "SET #beatAtMs = :nowMs, #recordUntilS = :recordUntilS",
  clauses: [isNotFinished, isNewer],
});

export type Heartbeat = { readonly kind: "alive"; readonly run: RunRow } | RunRefusal;

/** Keeps a run alive. Throws the table's faults. */
export async function beatRun(ctx: SlotContext, runId: string): Promise<Heartbeat> {
  const nowMs = ctx.clock.nowMs();
  const values = { ":nowMs": nowMs, ":recordUntilS": recordUntilS(nowMs) };
  const stored = await writeRow(ctx.table, runKey(runId), heartbeatExpression, values, () => false);
  const run = stored === null ? await explainRefusal(ctx, runId) : readRunRow(stored, nowMs);
  if (run === null) return { kind: "run_not_found" };
  return "kind" in run ? run : { kind: "alive", run };
}
