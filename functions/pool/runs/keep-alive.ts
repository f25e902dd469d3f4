/** Keeping a run alive through a batch that outlives it: without it the target would fall while the batch waits. */
import type { SlotContext } from "../slots/write.ts";
import { beatRun } from "./heartbeat.ts";
import { getRunRow } from "./read.ts";
import { runLifeMs } from "./run-row.ts";

/** A batch shorter than this costs neither a read nor a write. */
const lookEveryMs = runLifeMs / 6;
/** A sign of life that is younger is enough; whoever of the run's batches sees it grow older writes the next. */
const beatAfterMs = runLifeMs / 3;

/** Beats until the signal is aborted, or the run is over. Never throws; faults are told. */
export async function keepRunAlive(
  ctx: SlotContext,
  runId: string,
  signal: AbortSignal,
  onFault: (fault: unknown) => void,
): Promise<void> {
  for (;;) {
    await ctx.clock.sleep(lookEveryMs, signal);
    if (signal.aborted) return;
    try {
      const run = await getRunRow(ctx, runId);
      if (run === null || run.finishedAtMs !== undefined) return;
      if (run.beatAtMs > ctx.clock.nowMs() - beatAfterMs) continue;
      if ((await beatRun(ctx, runId)).kind !== "alive") return;
    } catch (fault) {
      onFault(fault);
    }
  }
}
