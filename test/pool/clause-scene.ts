/** States of the table in which one clause of a condition alone decides. */
import type { UpdateExpression } from "../../functions/pool/ports.ts";
import type { SlotRow } from "../../functions/pool/slot-row.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { unclaimSlot } from "../../functions/pool/slots/claim.ts";
import { releaseDraining, releaseReady } from "../../functions/pool/slots/release.ts";
import type { SlotContext } from "../../functions/pool/slots/write.ts";
import { ben, claimed, leased, present, type TestHandler } from "./test-pool.ts";

/** Brings the table into the state, and returns the write that the clause must refuse. */
export type Scene = (handler: TestHandler) => Promise<(writer: SlotContext) => Promise<unknown>>;

/** An expression, one of its clauses, the harm done without it, and where the clause alone prevents that. */
export type ClauseScene = readonly [UpdateExpression, clause: string, harm: string, Scene];

export const longAfterMs = 200_000;

/** A lease that was given back and taken again by another, so that only the fence tells the two apart. */
export async function takenAgain(handler: TestHandler): Promise<SlotRow> {
  const stale = await leased(handler, 0);
  await releaseReady(handler, stale);
  present(await acquireSlot(handler, 0, ben));
  return stale;
}

/** A claim that was taken back, its slot being claimed again. */
export async function claimedAgain(handler: TestHandler): Promise<SlotRow> {
  const stale = await claimed(handler, 0);
  await unclaimSlot(handler, stale);
  await claimed(handler, 0);
  return stale;
}

/** A lease whose holder gave its worker up, and has not managed to kill it for long. */
export async function longDraining(handler: TestHandler): Promise<SlotRow> {
  const lease = await leased(handler, 0);
  await releaseDraining(handler, lease);
  handler.at(longAfterMs);
  return lease;
}

export function ofVersion2(ctx: SlotContext): SlotContext {
  return { ...ctx, settings: { ...ctx.settings, supervisorVersion: "v2" } };
}
