import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../functions/rewards/ports.ts";

export interface VirtualClock extends Clock {
  /** Moves time on, waking sleepers in the order of their alarms and letting each do its work. */
  advance(ms: number): Promise<void>;
  /** Lets time pass while nobody runs, as for a process that is stopped; then all wake whose alarms are over. */
  freeze(ms: number): Promise<void>;
  /** Moves time on whenever nothing else moves, until it is done. */
  runUntil(done: () => boolean): Promise<void>;
  /** How many sleep now. */
  sleepers(): number;
}

/** Lets everything run that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await setImmediate();
}

/** Time that stands still until a test moves it. */
export function createVirtualClock(startMs = 1_700_000_000_000): VirtualClock {
  let nowMs = startMs;
  const alarms = new Set<{ atMs: number; wake: () => void }>();
  const advance = async (ms: number) => {
    const endMs = nowMs + ms;
    await settle();
    for (;;) {
      const next = [...alarms].sort((a, b) => a.atMs - b.atMs)[0];
      if (next === undefined || next.atMs > endMs) break;
      nowMs = Math.max(nowMs, next.atMs);
      next.wake();
      await settle();
    }
    nowMs = Math.max(nowMs, endMs);
  };
  return {
    nowMs: () => nowMs,
    advance,
    async runUntil(done) {
      for (;;) {
        await settle();
        if (done()) return;
        const nextMs = Math.min(...[...alarms].map(({ atMs }) => atMs));
        if (Number.isFinite(nextMs)) await advance(nextMs - nowMs);
      }
    },
    async freeze(ms) {
      await settle();
      nowMs += ms;
      await advance(0);
    },
    sleepers: () => alarms.size,
    sleep(ms, signal) {
      if (signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const alarm = { atMs: nowMs + ms, wake: () => {} };
        alarm.wake = () => {
          alarms.delete(alarm);
          signal?.removeEventListener("abort", alarm.wake);
          resolve();
        };
        signal?.addEventListener("abort", alarm.wake, { once: true });
        alarms.add(alarm);
      });
    },
  };
}
