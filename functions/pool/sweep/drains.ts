/**
 * Taking slots back: drain, kill, empty.
 *
 * Of a slot that was `creating` or `draining` nobody knows which sandboxes it has: one may have come of a creation that
 * got no answer. So once all slots of a pass are taken the provider is listed again, and a slot is emptied only after
 * every sandbox of its lives so far is certainly gone. If that list fails such slots stay `draining`, for the next pass.
 */
import type { ListedSandbox, Sandboxes } from "../ports.ts";
import type { SlotRow } from "../slot-row.ts";
import { emptySlot } from "../slots/empty.ts";
import type { SlotContext } from "../slots/write.ts";
import { forEachFew } from "./many.ts";
import { attempt, noteFault, type SweepLog } from "./report.ts";

export interface DrainContext extends SlotContext {
  readonly sandboxes: Pick<Sandboxes, "kill" | "list">;
  readonly poolId: () => Promise<string>;
}

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

/** Takes what can be taken, kills what is in it and empties it; what there was no time for is counted. */
export async function drainSlots(
  ctx: DrainContext,
  log: SweepLog,
  takings: readonly Taking[],
  isOver: () => boolean,
): Promise<void> {
  const taken: TakenSlot[] = [];
  log.did.postponed += await forEachFew(takings, isOver, async ({ action, take }) => {
    const slot = await attempt(log, action, take);
    if (slot === undefined || slot === null) return;
    log.did[action] += 1;
    taken.push(slot);
  });
  const listed = taken.some(({ mayHaveMore }) => mayHaveMore) ? await listAgain(ctx, log) : null;
  log.did.postponed += await forEachFew(taken, isOver, (slot) => emptyTaken(ctx, log, slot, listed));
}

async function listAgain(ctx: DrainContext, log: SweepLog): Promise<ListedSandbox[] | null> {
  const listed = await attempt(log, "list again", async () => ctx.sandboxes.list(await ctx.poolId()));
  return listed ?? null;
}

async function emptyTaken(
  ctx: DrainContext,
  log: SweepLog,
  { row, mayHaveMore }: TakenSlot,
  listed: readonly ListedSandbox[] | null,
): Promise<void> {
  const ids = new Set(listed?.filter((sandbox) => isOf(row, sandbox)).map(({ sandboxId }) => sandboxId));
  if (row.sandboxId !== undefined) ids.add(row.sandboxId);
  const gone = await Promise.all([...ids].map((id) => killSandbox(ctx, log, id)));
  if (gone.includes(false) || (mayHaveMore && listed === null)) return;
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
