/**
 * Acquire: a free worker becomes ours.
 *
 *   now ── leaseMs ──▶ leaseUntilMs
 *   now ─────────── minRemainingMs ───────────▶ neededUntilMs ──▶ ttlAtMs, maxAtMs must lie beyond
 *
 * Nothing was read before, so there is no fence to name: the state word alone makes the winner unique, and the answer
 * tells whose worker it now is and under which fence.
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type Holder, type SlotContext, writeSlot } from "./write.ts";

const isFree = "#state = :ready";
const outlivesTheWork = "#ttlAtMs > :neededUntilMs";
const isNotDueForReplacement = "#maxAtMs > :neededUntilMs";
const runsOurSupervisor = "#supervisorVersion = :version";

export const acquireExpression = slotExpression({
  name: "acquire",
  update:
    "SET #state = :leased, #owner = :owner, #leaseUntilMs = :leaseUntilMs, " +
    "#heldForRun = :runTag, #heldForBatch = :batchTag, #lastUsedAtMs = :nowMs, #waitedMs = :waitedMs ADD #fence :one",
  clauses: [isFree, outlivesTheWork, isNotDueForReplacement, runsOurSupervisor],
});

/** Leases the worker in the slot if it is free and fit; null otherwise. */
export function acquireSlot(ctx: SlotContext, slot: number, holder: Holder): Promise<SlotRow | null> {
  const nowMs = ctx.clock.nowMs();
  const owner = ctx.newId();
  return writeSlot(
    ctx,
    slot,
    acquireExpression,
    {
      ":leased": "leased",
      ":ready": "ready",
      ":owner": owner,
      ":leaseUntilMs": nowMs + ctx.settings.leaseMs,
      ":nowMs": nowMs,
      ":neededUntilMs": nowMs + ctx.settings.minRemainingMs,
      ":version": ctx.settings.supervisorVersion,
      ":runTag": holder.runTag,
      ":batchTag": holder.batchTag,
      ":waitedMs": holder.waitedMs ?? 0,
      ":one": 1,
    },
    (row) => row.owner === owner,
  );
}
