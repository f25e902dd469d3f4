/** Heartbeat: the run lives for another `runLifeMs`; one that had expired lives again. */
import { type SlotContext, writeRow } from "../slots/write.ts";
import { explainRefusal, type RunRefusal } from "./read.ts";
import {
  isNotFinished,
  isRegistered,
  type RunRow,
  readRunRow,
  recordUntilS,
  runExpression,
  runKey,
} from "./run-row.ts";

export const heartbeatExpression = runExpression({
  name: "beat run",
  update: "SET #beatAtMs = :nowMs, #recordUntilS = :recordUntilS",
  clauses: [isRegistered, isNotFinished],
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
