/**
 * Hand over: the holder gives its worker to one who waits for it, without letting go of it in between.
 *
 *   leased by one, fence f ── hand over ──▶ leased by another, fence f + 1
 *
 * One write instead of a release and an acquisition. The new fence makes it as good as both: what the old holder left
 * running is killed by the supervisor, and a cancellation that read the old holder's lease is refused.
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type Fenced, type Holder, type SlotContext, writeSlot } from "./write.ts";

const isStillOurs = "#fence = :fence";
const isLeased = "#state = :leased";
const outlivesTheWork = "#ttlAtMs > :neededUntilMs";
const isNotDueForReplacement = "#maxAtMs > :neededUntilMs";

export const handOverExpression = slotExpression({
  name: "hand over",
  update:
    "SET #owner = :owner, #leaseUntilMs = :leaseUntilMs, #heldForRun = :runTag, #heldForBatch = :batchTag, " +
    "#lastUsedAtMs = :nowMs, #waitedMs = :waitedMs ADD #fence :one",
  clauses: [isStillOurs, isLeased, outlivesTheWork, isNotDueForReplacement],
});

/** Null when the lease was lost, or the worker isn't fit to be given out again: then it is still ours. */
export function handOverSlot(ctx: SlotContext, lease: Fenced, holder: Holder): Promise<SlotRow | null> {
  const nowMs = ctx.clock.nowMs();
  const owner = ctx.newId();
  return writeSlot(
    ctx,
    lease.slot,
    handOverExpression,
    {
      ":fence": lease.fence,
      ":leased": "leased",
      ":owner": owner,
      ":nowMs": nowMs,
      ":leaseUntilMs": nowMs + ctx.settings.leaseMs,
      ":neededUntilMs": nowMs + ctx.settings.minRemainingMs,
      ":runTag": holder.runTag,
      ":batchTag": holder.batchTag,
      ":waitedMs": holder.waitedMs ?? 0,
      ":one": 1,
    },
    (row) => row.owner === owner,
  );
}
