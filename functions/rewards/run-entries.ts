/** Entering the run that a batch is for, without asking the table where the answer is known. */
import { type Entry, enterRun } from "../pool/runs/enter.ts";
import { defaultRunId, type RunRow, runExpiresAtMs, runLifeMs } from "../pool/runs/run-row.ts";
import type { SlotContext } from "../pool/slots/write.ts";

export interface RunEntries {
  enter(runId: string): Promise<Entry>;
  /** The run's row isn't what it was any more. */
  forget(): void;
}

/** Enters runs; asks the table for the default one, of which most batches may be, only when half of its life is over. */
export function rememberDefaultRun(pool: SlotContext): RunEntries {
  let known: RunRow | null = null;
  return {
    async enter(runId) {
      if (runId !== defaultRunId) return enterRun(pool, runId);
      const isFresh = known !== null && runExpiresAtMs(known) > pool.clock.nowMs() + runLifeMs / 2;
      if (isFresh && known !== null) return { kind: "entered", run: known };
      const entry = await enterRun(pool, runId);
      if (entry.kind === "entered") known = entry.run;
      return entry;
    },
    forget() {
      known = null;
    },
  };
}
