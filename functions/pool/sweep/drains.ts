/**
 * Taking slots back: drain, kill, empty.
 *
 * Of a slot that was `creating` or `draining` nobody knows which sandboxes it has: one may have come of a creation that
 * got no answer. So once all slots of a pass are taken the provider is listed again, and a slot is emptied only after
 * every sandbox of its lives so far is certainly gone. If that list fails such slots stay `draining`, for the next pass.
 *
 * A kill that failed may have done its work. What a list that is asked for afterwards lacks is gone, so that an incident
 * in which no kill is answered keeps no slot; what it has stays `draining`, and any pass, at once, tries again.
 */
import { type EndContext, isMissing, type Listing } from "../ending.ts";
import type { ListedSandbox } from "../ports.ts";
import type { SlotRow } from "../slot-row.ts";
import { emptySlot } from "../slots/empty.ts";
import type { SlotContext } from "../slots/write.ts";
import { forEachFew } from "./many.ts";
import { attempt, noteFault, type SweepLog } from "./report.ts";

export type DrainContext = SlotContext & EndContext;

/** A slot that we took, and whether there may be sandboxes that its row doesn't name. */
export interface TakenSlot {
  readonly row: SlotRow;
  readonly mayHaveMore: boolean;
}

/** Takes a slot; null when another did. */
export interface Taking {
  readonly action: keyof SweepLog["did"];
  readonly take: () => Promise<TakenSlot | null>;
}

/**
 * Takes what can be taken, kills what is in it and empties it; what there was no time for is counted. `listed` are the
 * sandboxes that a list had before.
 */
export async function drainSlots(
  ctx: DrainContext,
  log: SweepLog,
  takings: readonly Taking[],
  { listed: listedBefore, isOver }: { readonly listed: ReadonlySet<string>; readonly isOver: () => boolean },
): Promise<void> {
  const taken: TakenSlot[] = [];
  log.did.postponed += await forEachFew(takings, isOver, async ({ action, take }) => {
    const slot = await attempt(log, action, take);
    if (slot === undefined || slot === null) return;
    log.did[action] += 1;
    taken.push(slot);
  });
  const listed = taken.some(({ mayHaveMore }) => mayHaveMore) ? await listAgain(ctx, log) : null;
  const doubtful: TakenSlot[] = [];
  log.did.postponed += await forEachFew(taken, isOver, async (slot) => {
    if (slot.mayHaveMore && listed === null) return;
    if (await killAllOf(ctx, log, slot.row, listed?.sandboxes ?? [])) await emptyTaken(ctx, log, slot);
    else doubtful.push(slot);
  });
  const after = doubtful.length > 0 ? await listAgain(ctx, log) : null;
  if (after === null) return;
  const gone = doubtful.filter(({ row }) => isGone(row, listedBefore, after));
  log.did.postponed += await forEachFew(gone, isOver, (slot) => emptyTaken(ctx, log, slot));
}

async function listAgain(ctx: DrainContext, log: SweepLog): Promise<Listing | null> {
  const askedAtMs = ctx.clock.nowMs();
  const sandboxes = await attempt(log, "list again", async () => ctx.sandboxes.list(await ctx.poolId()));
  return sandboxes === undefined ? null : { sandboxes, askedAtMs };
}

/** Kills what the slot's row names and what the list has of it; whether all of that certainly is no more. */
async function killAllOf(
  ctx: DrainContext,
  log: SweepLog,
  row: SlotRow,
  listed: readonly ListedSandbox[],
): Promise<boolean> {
  const ids = new Set(listed.filter((sandbox) => isOf(row, sandbox)).map(({ sandboxId }) => sandboxId));
  if (row.sandboxId !== undefined) ids.add(row.sandboxId);
  const gone = await Promise.all([...ids].map((id) => killSandbox(ctx, log, id)));
  return !gone.includes(false);
}

/** Whether a list that was asked for after the kill shows that nothing of the slot is left. */
function isGone(row: SlotRow, listedBefore: ReadonlySet<string>, after: Listing): boolean {
  if (after.sandboxes.some((sandbox) => isOf(row, sandbox))) return false;
  return row.sandboxId === undefined || listedBefore.has(row.sandboxId) || isMissing(row, after);
}

async function emptyTaken(ctx: DrainContext, log: SweepLog, { row }: TakenSlot): Promise<void> {
  if (await attempt(log, "empty", () => emptySlot(ctx, row))) log.did.slotsEmptied += 1;
}

/** Of this life of the slot, or of one before it; never of a later one, which isn't ours. */
function isOf(row: SlotRow, sandbox: ListedSandbox): boolean {
  return sandbox.slot === row.slot && sandbox.generation <= row.generation;
}

/** Whether the sandbox certainly is no more. */
export async function killSandbox(
  ctx: Pick<DrainContext, "sandboxes">,
  log: SweepLog,
  sandboxId: string,
): Promise<boolean> {
  const killed = await attempt(log, "kill", () => ctx.sandboxes.kill(sandboxId));
  if (killed?.kind === "failed") noteFault(log, "kill", killed.fault);
  return killed !== undefined && killed.kind !== "failed";
}
