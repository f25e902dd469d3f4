import type { Clock } from "../../functions/rewards/ports.ts";

/** A clock that stands still until it is moved. */
export interface ManualClock extends Clock {
  /** Moves time, ends the sleeps that are due, and lets what waited for them run. */
  advance(ms: number): Promise<void>;
}

export function createManualClock(startMs: number): ManualClock {
  let nowMs = startMs;
  const sleepers = new Set<{ dueMs: number; wake: () => void }>();
  return {
    nowMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const sleeper = { dueMs: nowMs + ms, wake: resolve };
        sleepers.add(sleeper);
        signal?.addEventListener("abort", () => {
          sleepers.delete(sleeper);
          resolve();
        });
      }),
    async advance(ms) {
      nowMs += ms;
      for (const sleeper of [...sleepers]) {
        if (sleeper.dueMs > nowMs || !sleepers.delete(sleeper)) continue;
        sleeper.wake();
      }
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}
