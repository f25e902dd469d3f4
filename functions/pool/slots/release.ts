/**
 * Release: the holder gives its worker back, to be used again or to be killed.
 *
 *   leased ── healthy ──▶ ready
 *   leased ── healthy ──▶ ready, kept for a batch that waits elsewhere ── keptMs ──▶ ready
 *   leased ── broken ───▶ draining ── kill ── empty ──▶ empty
 *                            └──── drainLeaseMs ────▶ the sweep redoes it
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type Fenced, type SlotContext, writeSlot } from "./write.ts";

const isStillOurs = "#fence = :fence";
const isLeased = "#state = :leased";

export const releaseReadyExpression = slotExpression({
  name: "release ready",
  update:
    "SET #state = :ready, #lastUsedAtMs = :nowMs REMOVE #owner, #leaseUntilMs, #heldForRun, #heldForBatch",
  clauses: [isStillOurs, isLeased],
});

export const releaseKeptExpression = slotExpression({
  name: "release kept",
  update:
    "SET #state = :ready, #lastUsedAtMs = :nowMs, #leaseUntilMs = :leaseUntilMs, #heldForBatch = :batchTag " +
    "REMOVE #owner, #heldForRun",
  clauses: [isStillOurs, isLeased],
});

export const releaseDrainingExpression = slotExpression({
  name: "release draining",
  update: "SET #state = :draining, #leaseUntilMs = :leaseUntilMs REMOVE #owner, #heldForRun",
  clauses: [isStillOurs, isLeased],
});

/** Gives a healthy worker back to the pool; null when the lease was lost. */
export function releaseReady(ctx: SlotContext, lease: Fenced): Promise<SlotRow | null> {
  return writeSlot(
    ctx,
    lease.slot,
    releaseReadyExpression,
    { ":fence": lease.fence, ":leased": "leased", ":ready": "ready", ":nowMs": ctx.clock.nowMs() },
    (row) => row.fence === lease.fence && row.state === "ready",
  );
}

/**
 * Gives a healthy worker back, for one batch to take in the time to come; null when the lease was lost.
 *
 * That is a request and no right: to the write that acquires it, it is as free as any.
 */
export function releaseKept(
  ctx: SlotContext,
  lease: Fenced,
  kept: { readonly batchTag: string; readonly untilMs: number },
): Promise<SlotRow | null> {
  return writeSlot(
    ctx,
    lease.slot,
    releaseKeptExpression,
    {
      ":fence": lease.fence,
      ":leased": "leased",
      ":ready": "ready",
      ":nowMs": ctx.clock.nowMs(),
      ":leaseUntilMs": kept.untilMs,
      ":batchTag": kept.batchTag,
    },
    (row) => row.fence === lease.fence && row.state === "ready",
  );
}

/** Gives a worker up: null when the lease was lost, else the caller kills the sandbox and empties the slot. */
export function releaseDraining(ctx: SlotContext, lease: Fenced): Promise<SlotRow | null> {
  const leaseUntilMs = ctx.clock.nowMs() + ctx.settings.drainLeaseMs;
  return writeSlot(
    ctx,
    lease.slot,
    releaseDrainingExpression,
    { ":fence": lease.fence, ":leased": "leased", ":draining": "draining", ":leaseUntilMs": leaseUntilMs },
    (row) => row.fence === lease.fence && row.state === "draining",
  );
}
