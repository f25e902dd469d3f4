/**
 * Extend: the holder keeps its lease while it works.
 *
 *   ── acquire ── extendEveryMs ──▶ extend ── extendEveryMs ──▶ extend …
 *        └────────────── leaseMs ──────────────▶ (each moves the end to leaseMs from its own now)
 *
 * The fence was ours alone when we got it, so no owner is compared. The state word stops a late extension of a lease
 * that we have given back ourselves: giving back does not raise the fence.
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type Fenced, type SlotContext, writeSlot } from "./write.ts";

const isStillOurs = "#fence = :fence";
const isLeased = "#state = :leased";

export const extendExpression = slotExpression({
  name: "extend",
  update: "SET #leaseUntilMs = :leaseUntilMs",
  clauses: [isStillOurs, isLeased],
});

/** Moves the lease's end; null when the lease was lost. An expired lease that nobody took is extended all the same. */
export function extendLease(ctx: SlotContext, lease: Fenced): Promise<SlotRow | null> {
  const leaseUntilMs = ctx.clock.nowMs() + ctx.settings.leaseMs;
  return writeSlot(
    ctx,
    lease.slot,
    extendExpression,
    { ":fence": lease.fence, ":leased": "leased", ":leaseUntilMs": leaseUntilMs },
    () => false, // a repeated extension is no contradiction: it would have been applied again
  );
}
