/**
 * Renew: the sandbox was given a new time to live, and the row says so.
 *
 * It is keyed by the sandbox and not by a fence, because it is true of the sandbox whoever holds it, and the sweep
 * must not disturb a lease. A row that has another sandbox by now, or one that is being killed, is left alone.
 */
import type { PoolSettings } from "../settings.ts";
import { type SlotRow, slotExpression, type WorkerRow } from "../slot-row.ts";
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
 * When the plan ends the sandbox's life, at the earliest.
 *
 * That life began when the sandbox did, which is before its worker was published, by a creation's time at most.
 */
export function lifeEndsAtMs(settings: PoolSettings, bornAtMs: number): number {
  return bornAtMs - settings.createTimeoutMs + settings.lifeMs;
}

/** When the sandbox dies unless renewed. A time that is further away than any renewal gives is of a fast clock: unknown. */
export function believedTtlAtMs(
  settings: PoolSettings,
  { ttlAtMs }: Pick<WorkerRow, "ttlAtMs">,
  nowMs: number,
): number {
  return ttlAtMs > nowMs + settings.ttlMs + settings.graceMs ? 0 : ttlAtMs;
}

/** The time to live to ask for, never beyond the plan's life; null where a renewal would give no more than there is. */
export function renewalMs(
  settings: PoolSettings,
  row: Pick<WorkerRow, "bornAtMs" | "ttlAtMs">,
  nowMs: number,
): number | null {
  const leftMs = lifeEndsAtMs(settings, row.bornAtMs ?? nowMs) - nowMs;
  const ttlMs = Math.min(settings.ttlMs, leftMs);
  return ttlMs > 0 && nowMs + ttlMs > believedTtlAtMs(settings, row, nowMs) ? ttlMs : null;
}
