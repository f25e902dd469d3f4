/**
 * Shorten: a lease that ends later than any may is brought back to what it may last.
 *
 *   now ── what a lease may last ──▶ leaseUntilMs ─── …an hour of a fast clock… ───▶ what the row said
 *
 * Whoever wrote it had a clock that is ahead. It is not ended: its owner may be alive, and extends it, or is over with
 * it, in good time. If he is not, the slot is taken back as any other, and not only once time has come to where his
 * clock was.
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type SlotContext, writeSlot } from "./write.ts";

const isAsWeReadIt = "#fence = :seenFence";
const wasNotExtended = "#leaseUntilMs = :seenUntilMs";

export const shortenExpression = slotExpression({
  name: "shorten lease",
  update: "SET #leaseUntilMs = :leaseUntilMs",
  clauses: [isAsWeReadIt, wasNotExtended],
});

/** The longest that a creator, holder or drainer has a slot for himself without another word. */
export function longestLeaseMs({ settings }: Pick<SlotContext, "settings">): number {
  return Math.max(settings.createLeaseMs, settings.leaseMs, settings.drainLeaseMs);
}

/** Whether a row says so; by twice the longest lease, so that a reader whose clock is behind shortens no good one. */
export function isTooLong(ctx: Pick<SlotContext, "settings">, row: SlotRow, nowMs: number): boolean {
  const isTaken = row.state === "creating" || row.state === "leased" || row.state === "draining";
  return isTaken && (row.leaseUntilMs ?? 0) > nowMs + 2 * longestLeaseMs(ctx);
}

/** Shortens the lease of a row that was read; null when it moved meanwhile. */
export function shortenLease(ctx: SlotContext, seen: SlotRow): Promise<SlotRow | null> {
  const values = {
    ":seenFence": seen.fence,
    ":seenUntilMs": seen.leaseUntilMs ?? 0,
    ":leaseUntilMs": ctx.clock.nowMs() + longestLeaseMs(ctx),
  };
  return writeSlot(ctx, seen.slot, shortenExpression, values, () => true);
}
