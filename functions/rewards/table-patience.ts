/** Waiting for a table that does not answer, for a while and no longer. */
import { backoffMs } from "../pool/polling.ts";
import { Fault, whyStopped } from "./faults.ts";
import { joinSignals } from "./joined-signal.ts";
import type { Clock } from "./ports.ts";

export interface PatienceContext {
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Told of each failure that is not the last. */
  readonly report: (fault: unknown) => void;
}

export interface Waiting {
  /** A moment that is over already: one try, which takes what it takes. */
  readonly deadlineAtMs: number;
  /** Aborted when nobody waits any more, or everything stops. */
  readonly signal: AbortSignal;
}

/**
 * Does what needs the table, again and again while that is `store_unavailable`; the last fault is thrown when there is
 * no time for another try, and why it was told to stop when it was. A try that is still under way then is not waited
 * for: `letGo` is given what comes of it.
 */
export async function insistOnTable<Value>(
  { clock, random, report }: PatienceContext,
  waiting: Waiting,
  work: () => Promise<Value>,
  letGo: (late: Promise<Value>) => void = () => {},
): Promise<Value> {
  for (let failures = 1; ; failures += 1) {
    if (waiting.signal.aborted) throw whyStopped(waiting.signal);
    try {
      return await tryWithin(clock, waiting, work, letGo);
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "store_unavailable") throw error;
      const pauseMs = Math.max(backoffMs(failures, random()), error.retryAfterMs ?? 0);
      if (clock.nowMs() + pauseMs >= waiting.deadlineAtMs) throw error;
      report(error);
      await clock.sleep(pauseMs, waiting.signal);
    }
  }
}

async function tryWithin<Value>(
  clock: Clock,
  { deadlineAtMs, signal }: Waiting,
  work: () => Promise<Value>,
  letGo: (late: Promise<Value>) => void,
): Promise<Value> {
  const leftMs = deadlineAtMs - clock.nowMs();
  if (leftMs <= 0) return work();
  const done = new AbortController();
  const over = joinSignals(signal, done.signal);
  const working = work();
  try {
    const late = clock.sleep(leftMs, over.signal).then(() => null);
    const came = await Promise.race([working.then((value) => ({ value })), late]);
    if (came !== null) return came.value;
  } finally {
    done.abort();
    over.leave();
  }
  letGo(working);
  working.catch(() => {}); // what it would have failed with is told to nobody any more
  throw signal.aborted
    ? whyStopped(signal)
    : new Fault("store_unavailable", "The table did not answer in time. Nothing was run.");
}
