/**
 * Whose turn it is, among waiters that nobody queues.
 *
 * Theory of operation. A queue in the table would cost each waiter writes, and a waiter that died would hold it up.
 * Instead each leased slot says how long its holder had waited for it, which costs nothing, and whoever reads the pool
 * learns from that how long waits are. A free worker is then taken by a waiter with a chance that grows with the cube of
 * his age in that measure, so that whatever the load is, nobody waits much longer than is usual. A worker that nobody has
 * taken for two polls is anybody's. Where hardly anybody waits, all this is out of the way.
 */
import type { PoolView } from "./pool-view.ts";
import type { SlotRow } from "./slot-row.ts";

/** What was waited for a worker longer ago than this says nothing of the load now. */
const rememberedMs = 60_000;
/** Waits up to so many polls are no queue. */
const noQueuePolls = 2;

/** How long the present holders of workers, and those of a moment ago, had waited for them; 0 if nobody did. */
export function typicalWaitMs(view: PoolView, nowMs: number): number {
  const waits = view.slots.filter((row) => isRecent(row, nowMs)).map(({ waitedMs = 0 }) => waitedMs);
  return waits.length === 0 ? 0 : waits.reduce((sum, waitedMs) => sum + waitedMs, 0) / waits.length;
}

function isRecent({ state, lastUsedAtMs = 0 }: SlotRow, nowMs: number): boolean {
  return state === "leased" || (state === "ready" && lastUsedAtMs > nowMs - rememberedMs);
}

/** Whether waits are so long that newcomers should look who else is there. */
export function isCrowded(typicalMs: number, pollMs: number): boolean {
  return typicalMs > noQueuePolls * pollMs;
}

/** What was seen at a look at the pool is believed for so long. */
const believedMs = 5_000;

/**
 * Whether who gave a worker back may take it again without a look at the pool: when nobody took it for two polls, or
 * when nobody had to wait a moment ago. Who always did would never learn that others wait.
 */
export function mayTakeAgain(
  own: { readonly freeForMs: number; readonly lookedForMs: number; readonly typicalMs: number },
  pollMs: number,
): boolean {
  if (own.freeForMs >= 2 * pollMs) return true;
  return own.lookedForMs < believedMs && !isCrowded(own.typicalMs, pollMs);
}

export interface Waiter {
  readonly waitedMs: number;
  readonly typicalMs: number;
  /** For how long the free worker has been free. */
  readonly freeForMs: number;
  readonly pollMs: number;
}

/** Whether the waiter takes a free worker now, or leaves it to one who has waited longer. */
export function isOurTurn({ waitedMs, typicalMs, freeForMs, pollMs }: Waiter, random: number): boolean {
  if (!isCrowded(typicalMs, pollMs)) return true;
  const age = waitedMs / (1.3 * typicalMs);
  return random < Math.max(age ** 3, freeForMs / (2 * pollMs));
}
