/**
 * Enter: a batch of a run begins.
 *
 * One read, and a write only where the run must be woken: `default`, which nobody registers, comes into being or back
 * here, so that its workers are wanted while its first batch runs; and a run whose row says that half of its life is over
 * is kept alive, for a batch that may take long and for those who read no ledger. Otherwise the batch's entry in the
 * ledger, when it ends, is the sign of life.
 */
import { type SlotContext, writeRow } from "../slots/write.ts";
import { isSettled } from "./fold-ledger.ts";
import { beatRun } from "./heartbeat.ts";
import { getRunRow, type RunRefusal } from "./read.ts";
import {
  defaultRunId,
  defaultRunWorkers,
  type RunRow,
  readRunRow,
  recordUntilS,
  runExpiresAtMs,
  runExpression,
  runKey,
  runLifeMs,
} from "./run-row.ts";

/** Absolute in all it sets, so that it may be applied twice and needs no condition. */
export const wakeDefaultExpression = runExpression({
  name: "wake default run",
  update:
    "SET #beatAtMs = :nowMs, #recordUntilS = :recordUntilS, #name = if_not_exists(#name, :name), " +
    "#workers = if_not_exists(#workers, :workers), #registeredAtMs = if_not_exists(#registeredAtMs, :nowMs) " +
    "REMOVE #finishedAtMs",
  clauses: [],
});

export type Entry = { readonly kind: "entered"; readonly run: RunRow } | RunRefusal;

/** The run that a batch is for, alive. Throws the table's faults. */
export async function enterRun(ctx: SlotContext, runId: string): Promise<Entry> {
  const nowMs = ctx.clock.nowMs();
  const run = await getRunRow(ctx, runId);
  if (run !== null && isFresh(run, nowMs)) return { kind: "entered", run };
  if (runId === defaultRunId) return { kind: "entered", run: await wakeDefault(ctx) };
  if (run === null) return { kind: "run_not_found" };
  if (run.finishedAtMs !== undefined) return { kind: "run_finished" };
  const beat = await beatRun(ctx, runId);
  return beat.kind === "alive" ? { kind: "entered", run: beat.run } : beat;
}

/** Lives on for long enough without another sign of life, and was not taken for over by somebody whose clock is ahead. */
function isFresh(run: RunRow, nowMs: number): boolean {
  const isAlive = run.finishedAtMs === undefined && runExpiresAtMs(run) > nowMs + runLifeMs / 2;
  return isAlive && !isSettled(run);
}

async function wakeDefault(ctx: SlotContext): Promise<RunRow> {
  const nowMs = ctx.clock.nowMs();
  const values = {
    ":nowMs": nowMs,
    ":recordUntilS": recordUntilS(nowMs),
    ":name": defaultRunId,
    ":workers": Math.min(defaultRunWorkers, ctx.settings.slots),
  };
  const stored = await writeRow(ctx.table, runKey(defaultRunId), wakeDefaultExpression, values, () => true);
  const run = stored === null ? null : readRunRow(stored, nowMs);
  if (run === null) throw new TypeError("an unconditional write was refused");
  return run;
}
