/**
 * Time of a simulated world: it jumps to the next sleeper as soon as nothing else moves.
 *
 * Made for millions of events: sleepers are in a heap, and "nothing moves" is the next tick, which Node takes once no
 * promise can go on. Now and then a real turn of the event loop is let in.
 */
import type { Clock } from "../../functions/rewards/ports.ts";

interface Sleeper {
  readonly atMs: number;
  readonly order: number;
  wake: (() => void) | null;
}

export interface SimulatedTime extends Clock {
  /** Calls back after so much time. */
  after(ms: number, act: () => void): void;
  /** Drives the promise to its end; throws when it never can come, or not within `limitMs` of simulated time. */
  run<T>(promise: Promise<T>, limitMs: number): Promise<T>;
  /** Sleepers woken so far. */
  events(): number;
}

const ticksPerTurn = 20_000;

export function createSimulatedTime(startMs: number): SimulatedTime {
  let nowMs = startMs;
  let order = 0;
  let events = 0;
  const heap: Sleeper[] = [];

  function add(ms: number, wake: () => void): Sleeper {
    const sleeper: Sleeper = { atMs: nowMs + Math.max(0, ms), order: order++, wake };
    push(heap, sleeper);
    return sleeper;
  }

  /** False when nobody sleeps who wakes by then. */
  function wakeNext(untilMs: number): boolean {
    for (;;) {
      const next = heap[0];
      if (next === undefined || next.atMs > untilMs) return false;
      pop(heap);
      if (next.wake === null) continue;
      nowMs = next.atMs;
      events += 1;
      next.wake();
      return true;
    }
  }

  return {
    nowMs: () => nowMs,
    events: () => events,
    after: (ms, act) => {
      add(ms, act);
    },
    sleep: (ms, signal) =>
      new Promise<void>((resolve) => {
        if (signal === undefined) {
          add(ms, resolve);
          return;
        }
        if (signal.aborted) return resolve();
        const wake = () => {
          sleeper.wake = null;
          signal.removeEventListener("abort", wake);
          resolve();
        };
        const sleeper = add(ms, wake);
        signal.addEventListener("abort", wake);
      }),
    async run(promise, limitMs) {
      let settled = false;
      const watch = () => {
        settled = true;
      };
      promise.then(watch, watch);
      const untilMs = nowMs + limitMs;
      for (let ticks = 1; ; ticks += 1) {
        await (ticks % ticksPerTurn === 0 ? realTurn() : tick());
        if (settled) return promise;
        if (wakeNext(untilMs)) continue;
        await realTurn();
        if (settled) return promise;
        throw new Error(heap.length === 0 ? "waits for what never happens" : `not done within ${limitMs} ms`);
      }
    },
  };
}

function tick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}

function realTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function isEarlier(one: Sleeper, other: Sleeper): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

function push(heap: Sleeper[], sleeper: Sleeper): void {
  let at = heap.length;
  heap.push(sleeper);
  while (at > 0) {
    const parent = (at - 1) >> 1;
    const above = heap[parent] as Sleeper;
    if (!isEarlier(sleeper, above)) break;
    heap[at] = above;
    at = parent;
  }
  heap[at] = sleeper;
}

function pop(heap: Sleeper[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let child = 2 * at + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isEarlier(heap[child + 1] as Sleeper, heap[child] as Sleeper)) child += 1;
    if (!isEarlier(heap[child] as Sleeper, last)) break;
    heap[at] = heap[child] as Sleeper;
    at = child;
  }
  heap[at] = last;
}
