/**
 * Register: a run exists from here on, and wants workers.
 *
 * The client chooses the id, so every rank and every retry may say it: whoever comes first creates the run, the others
 * say the same again. A repeated registration replaces the wish and is a sign of life; nothing is counted, so an answer
 * that got lost does no harm. A finished run stays finished, or a retry that came late would bring it back.
 */
import { type SlotContext, writeRow } from "../slots/write.ts";
import {
  isNotFinished,
  type RunRow,
  readRunRow,
  recordUntilS,
  runColumns,
  runExpression,
  runKey,
} from "./run-row.ts";
import type { RunWish } from "./run-wish.ts";

export const registerExpression = runExpression({
  name: "register run",
  update:
    "SET #name = :name, #workers = :workers, #metadata = :metadata, #beatAtMs = :nowMs, " +
    "#recordUntilS = :recordUntilS, #registeredAtMs = if_not_exists(#registeredAtMs, :nowMs), " +
    "#owner = if_not_exists(#owner, :owner)",
  clauses: [isNotFinished],
});

export type Registration =
  | { readonly kind: "registered"; readonly run: RunRow; readonly isNew: boolean }
  | { readonly kind: "run_finished" };

/** Registers a run, or says the same again. The wish must have no `runProblems`. Throws the table's faults. */
export async function registerRun(ctx: SlotContext, runId: string, wish: RunWish): Promise<Registration> {
  const nowMs = ctx.clock.nowMs();
  const owner = ctx.newId();
  const stored = await writeRow(
    ctx.table,
    runKey(runId),
    registerExpression,
    {
      ":name": wish.name,
      ":workers": wish.workers,
      ":metadata": JSON.stringify(wish.metadata),
      ":nowMs": nowMs,
      ":recordUntilS": recordUntilS(nowMs),
      ":owner": owner,
    },
    () => false, // refused means finished, whoever was first
  );
  const run = stored === null ? null : readRunRow(stored, nowMs);
  if (stored === null || run === null) return { kind: "run_finished" };
  return { kind: "registered", run, isNew: stored[runColumns.owner] === owner };
}
