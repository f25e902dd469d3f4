/**
 * Note a start: the time in which a sandbox was there and no worker yet is the cost of the run that asked for it, also
 * when it came to nothing. It is no worker's idle time, which begins when the worker is ready.
 */
import type { WorkerStart } from "../creation.ts";
import type { SlotContext } from "../slots/write.ts";
import { newPlace, writeStartEntry } from "./ledger.ts";
import { getRunRow } from "./read.ts";

/** Nothing for no start, nor for a run that is finished, which pays for nothing more. Throws the table's faults. */
export async function noteStart(
  ctx: Pick<SlotContext, "table" | "clock">,
  runId: string,
  start: WorkerStart | undefined,
): Promise<void> {
  if (start === undefined) return;
  const run = await getRunRow(ctx, runId);
  if (run === null || run.finishedAtMs !== undefined) return;
  await writeStartEntry(ctx, newPlace(ctx, run, start.id), start.ms);
}
