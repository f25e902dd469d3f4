/** Keeping sandboxes alive, and asking for those that a list did not have. */
import type { Sandboxes } from "../ports.ts";
import type { WorkerRow } from "../slot-row.ts";
import { drainSlot } from "../slots/drain.ts";
import { recordRenewal, renewalMs } from "../slots/renew.ts";
import type { SlotContext } from "../slots/write.ts";
import type { TakenSlot } from "./drains.ts";
import { noteFault, type SweepLog } from "./report.ts";

export interface RenewContext extends SlotContext {
  readonly sandboxes: Pick<Sandboxes, "renew">;
}

/** Renews a worker's time to live; `gone` when the provider is sure that there is no such sandbox. */
export async function renewWorker(
  ctx: RenewContext,
  log: SweepLog,
  row: WorkerRow,
): Promise<"renewed" | "gone" | "unsure"> {
  const askedAtMs = ctx.clock.nowMs();
  const ttlMs = renewalMs(ctx.settings, row, askedAtMs);
  if (ttlMs === null) return "unsure";
  const renewed = await ctx.sandboxes.renew(row.sandboxId, ttlMs);
  if (renewed.kind === "failed") {
    noteFault(log, "renew", renewed.fault);
    return "unsure";
  }
  if (renewed.kind === "gone") return "gone";
  await recordRenewal(ctx, row.slot, row.sandboxId, askedAtMs + ttlMs);
  log.did.renewed += 1;
  return "renewed";
}

/**
 * Drains a free worker whose sandbox is gone.
 *
 * A list without it is a hint and no proof: a list that is silently incomplete must take nobody's worker. So it is
 * asked for by its name, in the form of a renewal, which does no harm if it is there.
 */
export async function drainIfGone(
  ctx: RenewContext,
  log: SweepLog,
  row: WorkerRow,
): Promise<TakenSlot | null> {
  if ((await renewWorker(ctx, log, row)) !== "gone") return null;
  const taken = await drainSlot(ctx, row);
  return taken === null ? null : { row: taken, mayHaveMore: false };
}
