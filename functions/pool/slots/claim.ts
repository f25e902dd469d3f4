/**
 * Claim: an empty slot becomes one in which a worker is being created.
 *
 *   ── claim ────────────── createLeaseMs ──────────────▶ the sweep may take it back
 *        └─ create … the supervisor proves itself … publish
 *
 * The new fence is also the generation, which the sandbox carries in its metadata: a sandbox that lands late, in a
 * slot that was claimed again, is recognised by its older one.
 */
import { type SlotRow, slotExpression } from "../slot-row.ts";
import { type Fenced, type SlotContext, writeSlot } from "./write.ts";

const wasNeverUsed = "attribute_not_exists(#state)";
const isEmpty = "#state = :empty";

export const claimExpression = slotExpression({
  name: "claim",
  update:
    "SET #state = :creating, #owner = :owner, #leaseUntilMs = :leaseUntilMs, #createdForRun = :runTag, " +
    "#supervisorVersion = :version, #generation = if_not_exists(#fence, :zero) + :one ADD #fence :one",
  clauses: [`(${wasNeverUsed} OR ${isEmpty})`],
});

const isBeingCreated = "#state = :creating";
const isOurClaim = "#fence = :fence";

export const unclaimExpression = slotExpression({
  name: "unclaim",
  update: "SET #state = :empty REMOVE #owner, #leaseUntilMs, #createdForRun, #supervisorVersion",
  clauses: [isOurClaim, isBeingCreated],
});

const wasTakenToDrain = "#state = :draining";
const onlyOnce = "#fence = :fenceAfter";
const isOurLife = "#generation = :generation";

export const freeTakenClaimExpression = slotExpression({
  name: "free taken claim",
  update: "SET #state = :empty REMOVE #owner, #leaseUntilMs, #createdForRun, #supervisorVersion",
  clauses: [wasTakenToDrain, onlyOnce, isOurLife],
});

/** Takes an empty slot to create a worker in it for a run; null when another was faster. */
export function claimSlot(ctx: SlotContext, slot: number, runTag: string): Promise<SlotRow | null> {
  const owner = ctx.newId();
  return writeSlot(
    ctx,
    slot,
    claimExpression,
    {
      ":creating": "creating",
      ":empty": "empty",
      ":owner": owner,
      ":leaseUntilMs": ctx.clock.nowMs() + ctx.settings.createLeaseMs,
      ":runTag": runTag,
      ":version": ctx.settings.supervisorVersion,
      ":zero": 0,
      ":one": 1,
    },
    (row) => row.owner === owner,
  );
}

/** Gives a claimed slot back; only for a creation that surely left no sandbox. False when the claim was taken back. */
export async function unclaimSlot(ctx: SlotContext, claim: Fenced): Promise<boolean> {
  const row = await writeSlot(
    ctx,
    claim.slot,
    unclaimExpression,
    { ":empty": "empty", ":creating": "creating", ":fence": claim.fence },
    (now) => now.fence === claim.fence && now.state === "empty",
  );
  return row !== null;
}

/**
 * Frees a slot whose claim was taken from us to be drained; only for a creation that surely left no sandbox.
 *
 * That there is nothing to drain only we know yet; whoever drains would have to wait until it can't land any more.
 * False when the slot is not in the state in which it was taken: then it is left alone.
 */
export async function freeTakenClaim(
  ctx: SlotContext,
  claim: Fenced & { readonly generation: number },
): Promise<boolean> {
  const row = await writeSlot(
    ctx,
    claim.slot,
    freeTakenClaimExpression,
    {
      ":empty": "empty",
      ":draining": "draining",
      ":fenceAfter": claim.fence + 1,
      ":generation": claim.generation,
    },
    () => true,
  );
  return row !== null;
}
