/**
 * Renew: the sandbox was given a new time to live, and the row says so.
 *
 * It is keyed by the sandbox and not by a fence, because it is true of the sandbox whoever holds it, and the sweep
 * must not disturb a lease. A row that has another sandbox by now, or one that is being killed, is left alone.
 */
import type { PoolSettings } from "../settings.ts";
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type SlotContext, writeSlot } from "./write.ts";

const isTheSameSandbox = "#sandboxId = :sandboxId";
const isInService = "#state IN (:ready, :leased)";

export const renewExpression = slotExpression({
  name: "renew",
  update: "SET #ttlAtMs = :ttlAtMs",
  clauses: [isTheSameSandbox, isInService],
});

/** Records a renewal that the provider has confirmed; null when the slot no longer serves that sandbox. */
export function recordRenewal(
  ctx: SlotContext,
  slot: number,
  sandboxId: string,
  ttlAtMs: number,
): Promise<SlotRow | null> {
  return writeSlot(
    ctx,
    slot,
    renewExpression,
    { ":sandboxId": sandboxId, ":ready": "ready", ":leased": "leased", ":ttlAtMs": ttlAtMs },
    () => false, // a repeated renewal is no contradiction: it would have been applied again
  );
}

/**
 * The time to live that a renewal may ask for: never beyond the plan's life.
 *
 * That life began when the sandbox did, which is before its worker was published, by a creation's time at most.
 */
export function ttlAllowedMs(settings: PoolSettings, row: Pick<SlotRow, "bornAtMs">, nowMs: number): number {
  const endsAtMs = (row.bornAtMs ?? nowMs) - settings.createTimeoutMs + settings.lifeMs;
  return Math.max(0, Math.min(settings.ttlMs, endsAtMs - nowMs));
}
