/** Keeping a run alive through a batch that outlives it: without it the target would fall while the batch waits. */
import type { SlotContext } from "../slots/write.ts";
import { beatRun } from "./heartbeat.ts";
import { runLifeMs } from "./run-row.ts";

/** Two of three may fail. A batch shorter than this costs no write. */
const beatEveryMs = runLifeMs / 3;

/** Beats until the signal is aborted, or the run is over. Never throws; faults are told. */
export async function keepRunAlive(
  ctx: SlotContext,
  runId: string,
  signal: AbortSignal,
  onFault: (fault: unknown) => void,
): Promise<void> {
  for (;;) {
    await ctx.clock.sleep(beatEveryMs, signal);
    if (signal.aborted) return;
    try {
      if ((await beatRun(ctx, runId)).kind !== "alive") return;
    } catch (fault) {
      onFault(fault);
    }
  }
}
