/**
 * Drain and expire: a slot is taken to have its sandbox killed.
 *
 *   ready ─────────────── drain ───────────────▶ draining ── kill ── empty
 *   creating │ leased │ draining, lease over + graceMs ── expire ──▶ draining
 *
 * Both raise the fence, so that two sweeps can't both believe that they drain, and so that a creator or holder who
 * comes back late finds itself overtaken. Both act on a row that was read, and name its fence and state.
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type SlotContext, writeSlot } from "./write.ts";

const isAsWeReadIt = "#fence = :seenFence";
const isFree = "#state = :ready";
const isInTheStateWeRead = "#state = :seenState";
const leaseIsOver = "#leaseUntilMs < :expiredBeforeMs";
const startDraining =
  "SET #state = :draining, #owner = :owner, #leaseUntilMs = :leaseUntilMs REMOVE #heldForRun, #heldForBatch " +
  "ADD #fence :one";

export const drainExpression = slotExpression({
  name: "drain",
  update: startDraining,
  clauses: [isAsWeReadIt, isFree],
});

export const expireExpression = slotExpression({
  name: "expire",
  update: startDraining,
  clauses: [isAsWeReadIt, isInTheStateWeRead, leaseIsOver],
});

/** Takes a free worker out of the pool; null when it was leased or drained meanwhile. */
export function drainSlot(ctx: SlotContext, seen: SlotRow): Promise<SlotRow | null> {
  return takeToDrain(ctx, seen, drainExpression, { ":ready": "ready" });
}

/**
 * Takes a slot whose creator, holder or drainer is past its time; null when it moved meanwhile.
 *
 * Of a slot that was `creating` or `draining` the caller must list the sandboxes before it empties the slot: there
 * may be one that no row knows.
 */
export function expireSlot(ctx: SlotContext, seen: SlotRow): Promise<SlotRow | null> {
  return takeToDrain(ctx, seen, expireExpression, {
    ":seenState": seen.state,
    ":expiredBeforeMs": ctx.clock.nowMs() - ctx.settings.graceMs,
  });
}

function takeToDrain(
  ctx: SlotContext,
  seen: SlotRow,
  expression: typeof drainExpression,
  more: Readonly<Record<string, string | number>>,
): Promise<SlotRow | null> {
  const owner = ctx.newId();
  const values = {
    ":seenFence": seen.fence,
    ":draining": "draining",
    ":owner": owner,
    ":leaseUntilMs": ctx.clock.nowMs() + ctx.settings.drainLeaseMs,
    ":one": 1,
    ...more,
  };
  return writeSlot(ctx, seen.slot, expression, values, (row) => row.owner === owner);
}
