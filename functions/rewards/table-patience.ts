/** Waiting for a table that does not answer, within a batch's deadline. */
import { backoffMs } from "../pool/polling.ts";
import { Fault } from "./faults.ts";
import type { Clock } from "./ports.ts";

export interface PatienceContext {
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Told of each failure that is not the last. */
  readonly report: (fault: unknown) => void;
}

/**
 * Does what needs the table, again and again while that is `store_unavailable`; the last fault is thrown when there is
 * no time for another try, or when nobody waits any more.
 */
export async function insistOnTable<Value>(
  { clock, random, report }: PatienceContext,
  { deadlineAtMs, signal }: { readonly deadlineAtMs: number; readonly signal: AbortSignal },
  work: () => Promise<Value>,
): Promise<Value> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "store_unavailable") throw error;
      const pauseMs = Math.max(backoffMs(failures, random()), error.retryAfterMs ?? 0);
      if (signal.aborted || clock.nowMs() + pauseMs >= deadlineAtMs) throw error;
      report(error);
      await clock.sleep(pauseMs, signal);
    }
  }
}
