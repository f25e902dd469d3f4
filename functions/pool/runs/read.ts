/**
 * Reading runs: one, or all that are remembered.
 *
 * The rows alone tell who is alive and what is wanted, for those who ask often; what a run has come to, and for how long
 * it lives exactly, is in its row and its ledger together.
 */
import type { SlotContext } from "../slots/write.ts";
import { isSettled } from "./fold-ledger.ts";
import { readLedger, withEntries } from "./ledger.ts";
import { type RunRow, readRunRow, runKey, runPartition, runPrefix, runState } from "./run-row.ts";

export type RunReader = Pick<SlotContext, "table" | "clock">;

/** Why a run can't be spoken of. */
export type RunRefusal = { readonly kind: "run_not_found" } | { readonly kind: "run_finished" };

/** A run's row as it is stored: its totals lack what is in the ledger only. */
export async function getRunRow({ table, clock }: RunReader, runId: string): Promise<RunRow | null> {
  return readRunRow(await table.get(runKey(runId)), clock.nowMs());
}

/** The run with all that was noted for it. */
export async function getRun(ctx: RunReader, runId: string): Promise<RunRow | null> {
  const row = await getRunRow(ctx, runId);
  return row === null ? null : withLedger(ctx, row);
}

/**
 * All rows of runs that are remembered, finished ones too, the latest registered first. Whole or a `Fault`. Of one that
 * seems to have expired the ledger is asked: it may have had a batch of which no sweep has told its row.
 */
export async function listRunRows(ctx: RunReader): Promise<RunRow[]> {
  const rows = await readRunRows(ctx);
  const nowMs = ctx.clock.nowMs();
  return Promise.all(rows.map((row) => (runState(row, nowMs) === "expired" ? withLedger(ctx, row) : row)));
}

/** The rows as they are stored. */
export async function readRunRows({ table, clock }: RunReader): Promise<RunRow[]> {
  const nowMs = clock.nowMs();
  const stored = await table.query(runPartition, runPrefix);
  return stored
    .flatMap((row) => readRunRow(row, nowMs) ?? [])
    .toSorted((one, other) => other.registeredAtMs - one.registeredAtMs);
}

/** The same with all that was noted for them: a query more for each run that is not long over. */
export async function listRuns(ctx: RunReader): Promise<RunRow[]> {
  const rows = await readRunRows(ctx);
  return Promise.all(rows.map((row) => withLedger(ctx, row)));
}

export async function withLedger(ctx: RunReader, row: RunRow): Promise<RunRow> {
  return isSettled(row) ? row : withEntries(row, await readLedger(ctx, row), ctx.clock.nowMs());
}

/** Why a write to a run was refused; the run itself when there is no such reason (any more). */
export async function explainRefusal(ctx: RunReader, runId: string): Promise<RunRefusal | RunRow> {
  const run = await getRunRow(ctx, runId);
  if (run === null) return { kind: "run_not_found" };
  return run.finishedAtMs === undefined ? run : { kind: "run_finished" };
}
