/** How many workers the pool should have, asked by handlers that wait, several times a second: runs come and go in minutes. */
import { listRunRows, type RunReader } from "./read.ts";
import { type RunRow, targetWorkers } from "./run-row.ts";

const keptMs = 2_000;

export interface RunsView {
  /** How many workers the pool should have. */
  targetWorkers(): Promise<number>;
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
  };
}
