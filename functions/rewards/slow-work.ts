/**
 * Work that waits behind slow cases.
 *
 * Short batches are done before a second worker would have been of use, so how many cases there are decides at first.
 * When those that run turn out to be slow, what waits is worth another worker however few it is, and if it waits in a
 * worker's chunk, half of it is handed over.
 */
import type { Dispatch, Service } from "./dispatch-state.ts";
import type { Assignment } from "./work-queue.ts";

/** A worker that takes so long for each case is slow. */
const SLOW_CASE_MS = 150;
/** And so is one that has started nothing for so long: it may be out of reach, while others are not. */
const UNSTARTED_MS = 3_000;

/** Workers that are slow and have cases waiting. */
export function slowServices(state: Dispatch): Service[] {
  return [...state.crew].filter((service) => isSlow(service) && hasWaiting(service));
}

/** Whether slow cases run while others wait, in the queue or behind them. */
export function countSlow(state: Dispatch): number {
  const isQueued = state.setup.board.queuedCases() > 0;
  return [...state.crew].filter((service) => isSlow(service) && (isQueued || hasWaiting(service))).length;
}

function isSlow({ chunks: [first] }: Service): boolean {
  if (first === undefined) return false;
  return first.pace.msPerCase() >= SLOW_CASE_MS || first.pace.unstartedMs() >= UNSTARTED_MS;
}

function hasWaiting({ chunks }: Service): boolean {
  return chunks.some((chunk) => chunk.hasWaiting());
}

function countWaiting({ chunks }: Service): number {
  return chunks.reduce((sum, chunk) => sum + chunk.waitingCases(), 0);
}

/** Half of what waits at the slow worker that has most; null when no other is slow. */
export function takeOver(state: Dispatch, by: Service): Assignment | null {
  const [from] = slowServices(state)
    .filter((service) => service !== by)
    .sort((one, other) => countWaiting(other) - countWaiting(one));
  return from?.chunks.findLast((chunk) => chunk.hasWaiting())?.handOver() ?? null;
}

/** Wakes the recruiter when the worker is slow; resolves when it leaves. */
export async function watchPace(state: Dispatch, service: Service, over: AbortSignal): Promise<void> {
  while (!over.aborted) {
    await state.setup.clock.sleep(SLOW_CASE_MS, over);
    if (!over.aborted && isSlow(service)) state.wakeRecruiter();
  }
}
