/** Reading runs: one, or all that are remembered. */
import type { SlotContext } from "../slots/write.ts";
import { type RunRow, readRunRow, runKey, runPartition, runPrefix } from "./run-row.ts";

export type RunReader = Pick<SlotContext, "table" | "clock">;

/** Why a run can't be spoken of. */
export type RunRefusal = { readonly kind: "run_not_found" } | { readonly kind: "run_finished" };

export async function getRun({ table, clock }: RunReader, runId: string): Promise<RunRow | null> {
  return readRunRow(await table.get(runKey(runId)), clock.nowMs());
}

/** All runs that are remembered, finished ones too, the latest registered first. Whole or a `Fault`. */
export async function listRuns({ table, clock }: RunReader): Promise<RunRow[]> {
  const nowMs = clock.nowMs();
  const stored = await table.query(runPartition, runPrefix);
  return stored
    .flatMap((row) => readRunRow(row, nowMs) ?? [])
    .toSorted((one, other) => other.registeredAtMs - one.registeredAtMs);
}

/** Why a write to a run was refused; the run itself when there is no such reason (any more). */
export async function explainRefusal(ctx: RunReader, runId: string): Promise<RunRefusal | RunRow> {
  const run = await getRun(ctx, runId);
  if (run === null) return { kind: "run_not_found" };
  return run.finishedAtMs === undefined ? run : { kind: "run_finished" };
}
