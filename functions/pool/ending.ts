/**
 * Whether a worker's sandbox certainly is no more, so that its slot may be used again.
 *
 * A kill without an answer may have done its work: the second one is told that there is no such sandbox. Where kills are
 * not answered at all, the provider's list tells, if it was asked for after the kill and is of a sandbox so old that it
 * must have it.
 */
import type { ListedSandbox, Sandboxes } from "./ports.ts";
import type { SlotRow } from "./slot-row.ts";
import type { SlotContext } from "./slots/write.ts";

export interface EndContext extends Pick<SlotContext, "clock"> {
  readonly sandboxes: Pick<Sandboxes, "kill" | "list">;
  /** The pool's id, read once. */
  readonly poolId: () => Promise<string>;
}

/** The provider's list, and when it was asked for. */
export interface Listing {
  readonly sandboxes: readonly ListedSandbox[];
  readonly askedAtMs: number;
}

/** A list may lag behind creations; one that misses an older worker misses the worker. */
const listLagMs = 60_000;

/** Whether the list lacks a worker that it would have if it were there. */
export function isMissing(
  { sandboxId, bornAtMs = Number.POSITIVE_INFINITY }: Pick<SlotRow, "sandboxId" | "bornAtMs">,
  { sandboxes, askedAtMs }: Listing,
): boolean {
  if (sandboxId === undefined || bornAtMs >= askedAtMs - listLagMs) return false;
  return !sandboxes.some((sandbox) => sandbox.sandboxId === sandboxId);
}

/** Kills a sandbox, a second time if the first got no answer; whether it certainly is no more. */
export async function isKilled(
  { sandboxes }: { readonly sandboxes: Pick<Sandboxes, "kill"> },
  sandboxId: string,
): Promise<boolean> {
  for (let tries = 0; tries < 2; tries += 1) {
    const killed = await sandboxes.kill(sandboxId);
    if (killed.kind !== "failed") return true;
  }
  return false;
}

/** Kills the slot's worker; whether it certainly is no more, or there was none. */
export async function endWorker(
  ctx: EndContext,
  row: Pick<SlotRow, "sandboxId" | "bornAtMs">,
): Promise<boolean> {
  if (row.sandboxId === undefined || (await isKilled(ctx, row.sandboxId))) return true;
  const askedAtMs = ctx.clock.nowMs();
  try {
    return isMissing(row, { sandboxes: await ctx.sandboxes.list(await ctx.poolId()), askedAtMs });
  } catch {
    return false; // nobody knows, and the sweep tries again
  }
}
