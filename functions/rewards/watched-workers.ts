/**
 * Workers for a batch that may end from the outside: cancelled under its key, or with its run.
 *
 * Whoever ends it takes its workers, so losing one is the moment to ask why: only if nobody ended the batch does it go
 * on with another worker. A batch that waits for its workers has none to lose, and asks now and then instead.
 */
import { Fault, type FaultCode } from "./faults.ts";
import type { Chunk, Clock, WorkerEvent, WorkerLease, WorkerSource } from "./ports.ts";

export interface WatchOptions {
  readonly clock: Clock;
  /** Why nobody wants the batch's answer any more; null while somebody does. Never throws. */
  readonly findEnd: () => Promise<Fault | null>;
  /** Whether to ask also after a worker was had at once. */
  readonly asksAlways: boolean;
  /** Told, again and again, that a worker has begun with what it was given: there is time for other things meanwhile. */
  readonly onWork?: () => void;
}

export interface WatchedWorkers extends WorkerSource {
  /** Time until workers were given back, added up. */
  heldMs(): number;
  /** Workers that were created for it. */
  created(): number;
}

/** What was true when the batch asked for a worker is believed for so long. */
const askEveryMs = 5_000;

export function watchWorkers(source: WorkerSource, watch: WatchOptions): WatchedWorkers {
  const { clock, findEnd, asksAlways } = watch;
  const tally = { heldMs: 0, created: 0 };
  return {
    heldMs: () => tally.heldMs,
    created: () => tally.created,
    isWantedElsewhere: async () => (await source.isWantedElsewhere?.()) ?? false,
    async acquire({ signal, ...options }) {
      const askedAtMs = clock.nowMs();
      const waiting = watchWhileWaiting(watch);
      try {
        const both = AbortSignal.any([signal, waiting.ended]);
        const lease = await source.acquire({ ...options, signal: both });
        const isQuick = clock.nowMs() - askedAtMs < askEveryMs;
        const end = waiting.end() ?? (lease === null || (isQuick && !asksAlways) ? null : await findEnd());
        if (end === null) return lease && watchLease(lease, watch, tally);
        await lease?.release("healthy");
        throw end;
      } finally {
        waiting.stop();
      }
    },
  };
}

function watchWhileWaiting({ clock, findEnd }: WatchOptions) {
  const over = new AbortController();
  const ended = new AbortController();
  let end: Fault | null = null;
  const loop = async () => {
    while (end === null) {
      await clock.sleep(askEveryMs, over.signal);
      if (over.signal.aborted) return;
      end = await findEnd();
    }
    ended.abort();
  };
  void loop();
  return { ended: ended.signal, end: () => end, stop: () => over.abort() };
}

function watchLease(
  lease: WorkerLease,
  watch: WatchOptions,
  tally: { heldMs: number; created: number },
): WorkerLease {
  const { clock } = watch;
  const sinceMs = clock.nowMs();
  if (lease.created === true) tally.created += 1;
  return {
    ...lease,
    execute: (chunk, signal) => executeWatched(lease, chunk, signal, watch),
    release(condition) {
      tally.heldMs += clock.nowMs() - sinceMs;
      return lease.release(condition);
    },
  };
}

/** As which a batch that somebody ends may see it. */
const losses: readonly FaultCode[] = ["worker_lost", "supervisor_protocol", "sandbox_unavailable"];

async function* executeWatched(
  lease: WorkerLease,
  chunk: Chunk,
  signal: AbortSignal,
  { findEnd, onWork }: WatchOptions,
): AsyncIterable<WorkerEvent> {
  try {
    for await (const event of lease.execute(chunk, signal)) {
      if (event.kind === "case_started") onWork?.();
      if (event.kind === "summary" && event.end === "superseded") await throwEnd(findEnd);
      yield event;
    }
  } catch (error) {
    if (error instanceof Fault && !signal.aborted && losses.includes(error.code)) await throwEnd(findEnd);
    throw error;
  }
}

async function throwEnd(findEnd: WatchOptions["findEnd"]): Promise<void> {
  const end = await findEnd();
  if (end !== null) throw end;
}
