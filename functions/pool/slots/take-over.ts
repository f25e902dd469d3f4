/**
 * Take over and revoke: a leased worker changes its holder.
 *
 *   ── last extension ── leaseMs ──▶ leaseUntilMs ── graceMs ──▶ may be taken over
 *
 * The old holder may be alive and not know (a frozen container). Its writes fail by the fence, and the supervisor, told
 * the new fence with the first request of the new holder, kills what the old one left running: that is what makes the
 * worker usable again. A revocation is the same before the lease's end, for the one who cancels a batch.
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type Holder, type SlotContext, writeSlot } from "./write.ts";

const isAsWeReadIt = "#fence = :seenFence";
const isLeased = "#state = :leased";
const leaseIsOver = "#leaseUntilMs < :expiredBeforeMs";
const outlivesTheWork = "#ttlAtMs > :neededUntilMs";
const isNotDueForReplacement = "#maxAtMs > :neededUntilMs";
const runsOurSupervisor = "#supervisorVersion = :version";
const changeHolder =
  "SET #owner = :owner, #leaseUntilMs = :leaseUntilMs, #heldForRun = :runTag, #heldForBatch = :batchTag, " +
  "#lastUsedAtMs = :nowMs, #waitedMs = :waitedMs ADD #fence :one";

export const takeOverExpression = slotExpression({
  name: "take over",
  update: changeHolder,
  clauses: [isAsWeReadIt, isLeased, leaseIsOver, outlivesTheWork, isNotDueForReplacement, runsOurSupervisor],
});

export const revokeExpression = slotExpression({
  name: "revoke",
  update: changeHolder,
  clauses: [isAsWeReadIt, isLeased],
});

/** Takes a worker whose lease has expired; null when it was extended, given back or taken meanwhile, or isn't fit. */
export function takeOverSlot(ctx: SlotContext, seen: SlotRow, holder: Holder): Promise<SlotRow | null> {
  const nowMs = ctx.clock.nowMs();
  return changeHands(ctx, seen, holder, takeOverExpression, {
    ":expiredBeforeMs": nowMs - ctx.settings.graceMs,
    ":neededUntilMs": nowMs + ctx.settings.minRemainingMs,
    ":version": ctx.settings.supervisorVersion,
  });
}

/**
 * Takes a worker from a live holder; null when the lease that was read is over.
 *
 * The caller must tell the supervisor the new fence, and then release the slot.
 */
export function revokeLease(ctx: SlotContext, seen: SlotRow, holder: Holder): Promise<SlotRow | null> {
  return changeHands(ctx, seen, holder, revokeExpression, {});
}

function changeHands(
  ctx: SlotContext,
  seen: SlotRow,
  holder: Holder,
  expression: typeof takeOverExpression,
  more: Readonly<Record<string, string | number>>,
): Promise<SlotRow | null> {
  const owner = ctx.newId();
  const nowMs = ctx.clock.nowMs();
  const values = {
    ":seenFence": seen.fence,
    ":leased": "leased",
    ":owner": owner,
    ":nowMs": nowMs,
    ":leaseUntilMs": nowMs + ctx.settings.leaseMs,
    ":runTag": holder.runTag,
    ":batchTag": holder.batchTag,
    ":waitedMs": holder.waitedMs ?? 0,
    ":one": 1,
    ...more,
  };
  return writeSlot(ctx, seen.slot, expression, values, (row) => row.owner === owner);
}
