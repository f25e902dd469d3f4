/** Whether a batch should give one of its workers to another, that waits with none. */
import type { LeaseContainer } from "./lease-container.ts";
import { fitWorkers } from "./pool-view.ts";
import type { Holder } from "./slots/write.ts";
import { hasWaitedLong, isOfUse, type Waiter } from "./waiting-line.ts";

const looksEveryMs = 2_000;

/**
 * Asked at each end of a chunk, for the holder's batch. Never throws.
 *
 * One of several workers goes to whoever waits with none; an only one to who waits for longer than it has been held, so
 * that batches take turns on it.
 */
export type IsWanted = (holder: Holder) => Promise<boolean>;

/** Of those that wait in this container it knows at once; for others it looks at the pool, every other second at most. */
export function createWanted(container: LeaseContainer): IsWanted {
  const { ctx, line, pool, report } = container;
  let lookedAtMs = 0;
  /** When a worker was last promised to a batch: one is on its way to it, and no other is needed. */
  const promisedAtMs = new Map<string, number>();
  return async (holder) => {
    const nowMs = ctx.clock.nowMs();
    const leases = line.leasesOf(holder.batchTag);
    if (leases.length === 0) return false;
    const beforeMs = leases.length > 1 ? nowMs : Math.min(...leases);
    for (const [batchTag, atMs] of promisedAtMs)
      if (nowMs - atMs >= looksEveryMs) promisedAtMs.delete(batchTag);
    const waiter = findWaiterHere(container, holder, beforeMs, promisedAtMs);
    if (waiter !== null) promisedAtMs.set(waiter.holder.batchTag, nowMs);
    if (waiter !== null) return true;
    if (nowMs - lookedAtMs < looksEveryMs) return false;
    lookedAtMs = nowMs;
    try {
      await pool.read();
      return isWantedElsewhere(container, holder, beforeMs, leases.length);
    } catch (fault) {
      report({ kind: "fault", fault });
      return false;
    }
  };
}

function findWaiterHere(
  { ctx, line }: LeaseContainer,
  own: Holder,
  beforeMs: number,
  promised: ReadonlyMap<string, number>,
): Waiter | null {
  const nowMs = ctx.clock.nowMs();
  for (const waiter of line.waiters()) {
    const { batchTag } = waiter.holder;
    if (waiter.startedAtMs >= beforeMs || !hasWaitedLong(waiter, nowMs)) continue;
    if (batchTag === own.batchTag || promised.has(batchTag) || !isOfUse(waiter, own.runTag)) continue;
    if (line.leasesOf(batchTag).length === 0) return waiter;
  }
  return null;
}

function isWantedElsewhere(
  { ctx, pool, signs }: LeaseContainer,
  own: Holder,
  beforeMs: number,
  workers: number,
): boolean {
  const nowMs = ctx.clock.nowMs();
  const seen = pool.last();
  if (seen === null || fitWorkers(ctx, seen.view, nowMs).length > 0) return false;
  return signs.elsewhere(seen.view, nowMs).some(({ runTag, batchTag, sinceMs, runIsFull }) => {
    // Of a handler of the version before only the run is known, and it says so only where that has no worker at all.
    if (batchTag === null) return workers > 1 && runTag !== own.runTag;
    return sinceMs < beforeMs && (!runIsFull || runTag === own.runTag);
  });
}
