/**
 * Time that passes only when everybody waits for it.
 *
 * `run` drives a promise to its end: it lets all code run until nothing moves, then jumps to the next sleeper's time.
 * Literal epoch milliseconds go in, no real time is spent.
 */
import type { Clock } from "../../functions/rewards/ports.ts";

interface Sleeper {
  readonly atMs: number;
  readonly order: number;
  wake(): void;
}

export interface VirtualClock extends Clock {
  /** Jumps without waking anybody: a machine that was frozen. */
  set(nowMs: number): void;
  /** Runs until the promise settles; throws when it never can, or not within `limitMs` of virtual time. */
  run<T>(promise: Promise<T>, limitMs?: number): Promise<T>;
  /** Lets time pass, waking who is due, in order. */
  pass(ms: number): Promise<void>;
  /** How many sleep. */
  sleepers(): number;
}

export function createVirtualClock(startMs: number): VirtualClock {
  let nowMs = startMs;
  let order = 0;
  const sleeping = new Set<Sleeper>();

  const earliest = () =>
    [...sleeping].reduce<Sleeper | undefined>(
      (first, next) =>
        first === undefined ||
        next.atMs < first.atMs ||
        (next.atMs === first.atMs && next.order < first.order)
          ? next
          : first,
      undefined,
    );

  function wakeNext(untilMs: number): boolean {
    const next = earliest();
    if (next === undefined || next.atMs > untilMs) return false;
    nowMs = Math.max(nowMs, next.atMs);
    next.wake();
    return true;
  }

  return {
    nowMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise<void>((resolve) => {
        if (signal?.aborted) return resolve();
        const sleeper = { atMs: nowMs + Math.max(0, ms), order: order++, wake };
        function wake() {
          sleeping.delete(sleeper);
          signal?.removeEventListener("abort", wake);
          resolve();
        }
        sleeping.add(sleeper);
        signal?.addEventListener("abort", wake);
      }),
    set(toMs) {
      nowMs = toMs;
    },
    async run(promise, limitMs = 3_600_000) {
      let settled = false;
      const watch = () => {
        settled = true;
      };
      promise.then(watch, watch);
      const untilMs = nowMs + limitMs;
      for (;;) {
        await turn();
        if (settled) return promise;
        if (!wakeNext(untilMs)) {
          await turn();
          if (settled) return promise;
          if (earliest() === undefined) throw new Error("waits for something that never happens");
          throw new Error(`not done within ${limitMs} ms of virtual time`);
        }
      }
    },
    async pass(ms) {
      const untilMs = nowMs + ms;
      await turn();
      while (wakeNext(untilMs)) await turn();
      nowMs = untilMs;
      await turn();
    },
    sleepers: () => sleeping.size,
  };
}

/** Until no promise is left that could go on. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
