/**
 * Publish: the created worker enters its slot, leased to its creator or free for anybody.
 *
 *   ── create asked ── answer ── proved ── publish ──────────────▶ ttlAtMs ─────────▶ maxAtMs
 *        └ the time to live counts from here                        (renewed)          (replaced)
 */
import type { SandboxAddress } from "../ports.ts";
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type Fenced, type Holder, type SlotContext, writeSlot } from "./write.ts";

const isOurClaim = "#fence = :fence";
const isBeingCreated = "#state = :creating";
const worker =
  "#sandboxId = :sandboxId, #access = :access, #bornAtMs = :nowMs, #ttlAtMs = :ttlAtMs, #maxAtMs = :maxAtMs";

export const publishLeasedExpression = slotExpression({
  name: "publish leased",
  update:
    `SET #state = :leased, ${worker}, #leaseUntilMs = :leaseUntilMs, ` +
    "#heldForRun = :runTag, #heldForBatch = :batchTag",
  clauses: [isOurClaim, isBeingCreated],
});

export const publishReadyExpression = slotExpression({
  name: "publish ready",
  update: `SET #state = :ready, ${worker} REMOVE #owner, #leaseUntilMs`,
  clauses: [isOurClaim, isBeingCreated],
});

export interface NewWorker extends SandboxAddress {
  /** When its creation was asked for. */
  readonly askedAtMs: number;
  readonly maxAtMs: number;
}

/**
 * Puts a worker into the claimed slot: leased to the holder, or ready without one.
 *
 * Null when the claim was taken back meanwhile: the caller must kill the sandbox. A row with another fence than the
 * claim's: it was published, its answer came late, and somebody else has the worker by now.
 */
export function publishWorker(
  ctx: SlotContext,
  claim: Fenced,
  made: NewWorker,
  holder: Holder | null,
): Promise<SlotRow | null> {
  const nowMs = ctx.clock.nowMs();
  const values = {
    ":fence": claim.fence,
    ":creating": "creating",
    ":sandboxId": made.sandboxId,
    ":access": made.access,
    ":nowMs": nowMs,
    ":ttlAtMs": made.askedAtMs + ctx.settings.ttlMs,
    ":maxAtMs": made.maxAtMs,
  };
  // Nobody else could have written our sandbox; a free worker may have been leased before we looked.
  const isOurs = (row: SlotRow) => row.sandboxId === made.sandboxId;
  if (holder === null) {
    return writeSlot(ctx, claim.slot, publishReadyExpression, { ...values, ":ready": "ready" }, isOurs);
  }
  const leased = {
    ":leased": "leased",
    ":leaseUntilMs": nowMs + ctx.settings.leaseMs,
    ":runTag": holder.runTag,
    ":batchTag": holder.batchTag,
  };
  return writeSlot(ctx, claim.slot, publishLeasedExpression, { ...values, ...leased }, isOurs);
}
