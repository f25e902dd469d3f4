import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../functions/rewards/ports.ts";

export interface VirtualClock extends Clock {
  /** Moves time on, waking sleepers in the order of their alarms and letting each do its work. */
  advance(ms: number): Promise<void>;
  /** Lets time pass while nobody runs, as for a process that is stopped; then all wake whose alarms are over. */
  freeze(ms: number): Promise<void>;
  /** Moves time on whenever nothing else moves, until it is done. */
  runUntil(done: () => boolean): Promise<void>;
  /** Sets the clock back, as a time service does; who sleeps does so for as long as he would have. */
  setBack(ms: number): void;
  /** How many sleep now. */
  sleepers(): number;
}

export interface VirtualClockOptions {
  /** Sleepers wake so much too early, as Node's timers do now and then: by a millisecond. */
  readonly wakesEarlyMs?: number;
}

/** Lets everything run that waits for nothing but its turn. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await setImmediate();
}

/** Time that stands still until a test moves it. */
export function createVirtualClock(
  startMs = 1_700_000_000_000,
  { wakesEarlyMs = 0 }: VirtualClockOptions = {},
): VirtualClock {
  let nowMs = startMs;
  const alarms = new Set<{ atMs: number; wake: () => void }>();
  // Who sleeps for the least of times moves on all the same.
  const napMs = (ms: number) => (ms > wakesEarlyMs ? ms - wakesEarlyMs : ms);
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
    setBack(ms) {
      nowMs -= ms;
      for (const alarm of alarms) alarm.atMs -= ms;
    },
    sleepers: () => alarms.size,
    sleep(ms, signal) {
      if (signal?.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const alarm = { atMs: nowMs + napMs(ms), wake: () => {} };
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
