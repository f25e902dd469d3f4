/**
 * Empty: the sandbox is gone, the slot may be claimed again.
 *
 * Fence and generation stay: they must never come back, or a late write or sandbox of an earlier life would pass for
 * one of the new.
 */
import { slotExpression } from "../slot-row.ts";
import { type Fenced, type SlotContext, writeSlot } from "./write.ts";

const isOurDrain = "#fence = :fence";
const isDraining = "#state = :draining";

export const emptyExpression = slotExpression({
  name: "empty",
  update:
    "SET #state = :empty REMOVE #sandboxId, #access, #owner, #leaseUntilMs, #bornAtMs, #ttlAtMs, #maxAtMs, " +
    "#lastUsedAtMs, #waitedMs, #heldForBatch, #supervisorVersion, #createdForRun",
  clauses: [isOurDrain, isDraining],
});

/** Frees a drained slot, once its sandbox was killed; false when the drain was taken over. */
export async function emptySlot(ctx: SlotContext, drain: Fenced): Promise<boolean> {
  const row = await writeSlot(
    ctx,
    drain.slot,
    emptyExpression,
    { ":fence": drain.fence, ":draining": "draining", ":empty": "empty" },
    (now) => now.fence === drain.fence && now.state === "empty",
  );
  return row !== null;
}
