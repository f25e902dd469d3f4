/** The pool's target, for those who ask often. */
import { listRuns, type RunReader } from "./read.ts";
import { targetWorkers } from "./run-row.ts";

/** Handlers that wait ask several times a second; runs come and go in minutes. */
const keptMs = 2_000;

/** Reads the target, at most every two seconds. A read that fails is not remembered. */
export function rememberTarget(ctx: RunReader, slots: number): () => Promise<number> {
  let known: { readonly untilMs: number; readonly target: Promise<number> } | null = null;
  return () => {
    const nowMs = ctx.clock.nowMs();
    if (known === null || nowMs >= known.untilMs) {
      const target = listRuns(ctx).then((runs) => targetWorkers(runs, slots, nowMs));
      known = { untilMs: nowMs + keptMs, target };
      target.catch(() => {
        known = null;
      });
    }
    return known.target;
  };
}
