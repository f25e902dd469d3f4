/** What handlers that wait ask of the runs, several times a second: they come and go in minutes. */
import { listRunRows, type RunReader } from "./read.ts";
import { type RunRow, targetWorkers } from "./run-row.ts";

const keptMs = 2_000;

export interface RunsView {
  /** How many workers the pool should have. */
  targetWorkers(): Promise<number>;
  /** Whether the run was finished, so that nobody wants what its batches still do. */
  isFinished(runId: string): Promise<boolean>;
}

/** Reads the runs at most every two seconds; one per container. A read that fails is not remembered. */
export function rememberRuns(ctx: RunReader, slots: number): RunsView {
  let known: { readonly untilMs: number; readonly runs: Promise<RunRow[]> } | null = null;
  function readRuns(): Promise<RunRow[]> {
    const nowMs = ctx.clock.nowMs();
    if (known === null || nowMs >= known.untilMs) {
      const runs = listRunRows(ctx);
      known = { untilMs: nowMs + keptMs, runs };
      runs.catch(() => {
        known = null;
      });
    }
    return known.runs;
  }
  return {
    targetWorkers: async () => targetWorkers(await readRuns(), slots, ctx.clock.nowMs()),
    async isFinished(runId) {
      const run = (await readRuns()).find((known) => known.runId === runId);
      return run?.finishedAtMs !== undefined;
    },
  };
}
