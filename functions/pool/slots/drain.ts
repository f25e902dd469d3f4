/**
 * Drain, expire and abandon: a slot is taken to have its sandbox killed.
 *
 *   ready ─────────────── drain ───────────────▶ draining ── kill ── empty
 *   creating │ leased │ draining, lease over + graceMs ── expire ──▶ draining
 *   creating ─── abandon ───▶ draining, until the claim's own time is over
 *
 * All raise the fence, so that two sweeps can't both believe that they drain, and so that a creator or holder who
 * comes back late finds itself overtaken. All act on a row that was read, and name its fence and state. The tag of the
 * batch that held the worker stays: its programs may run on until the sandbox is gone.
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type SlotContext, writeSlot } from "./write.ts";

const isAsWeReadIt = "#fence = :seenFence";
const isFree = "#state = :ready";
const isBeingCreated = "#state = :creating";
const isInTheStateWeRead = "#state = :seenState";
const leaseIsOver = "#leaseUntilMs < :expiredBeforeMs";
const startDraining =
  "SET #state = :draining, #owner = :owner, #leaseUntilMs = :leaseUntilMs REMOVE #heldForRun " +
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

export const abandonExpression = slotExpression({
  name: "abandon",
  update: "SET #state = :draining, #owner = :owner ADD #fence :one",
  clauses: [isAsWeReadIt, isBeingCreated],
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

/**
 * Makes sure that a worker which nobody wants any more is never published; null when the slot moved meanwhile.
 *
 * The claim's lease stays: the sandbox may still land, so the slot must not be emptied before. Its creator, who finds
 * itself overtaken, kills the sandbox.
 */
export function abandonCreation(ctx: SlotContext, seen: SlotRow): Promise<SlotRow | null> {
  const owner = ctx.newId();
  const values = {
    ":seenFence": seen.fence,
    ":creating": "creating",
    ":draining": "draining",
    ":owner": owner,
    ":one": 1,
  };
  return writeSlot(ctx, seen.slot, abandonExpression, values, (row) => row.owner === owner);
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
