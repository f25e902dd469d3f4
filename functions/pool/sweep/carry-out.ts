/** Doing what a plan says, each part for itself: one failure does not stop the others. */
import type { ListedSandbox, Sandboxes } from "../ports.ts";
import type { SlotRow, SlotState } from "../slot-row.ts";
import { abandonCreation, drainSlot, expireSlot } from "../slots/drain.ts";
import { releaseDraining } from "../slots/release.ts";
import { shortenLease } from "../slots/shorten.ts";
import { revokeLease } from "../slots/take-over.ts";
import { type DrainContext, drainSlots, killSandbox, type TakenSlot, type Taking } from "./drains.ts";
import { forEachFew } from "./many.ts";
import type { SweepPlan } from "./plan.ts";
import { drainIfGone, renewWorker } from "./renewals.ts";
import { attempt, type SweepCounts, type SweepLog } from "./report.ts";

export type CarryOutContext = DrainContext & { readonly sandboxes: Sandboxes };

/** First what keeps workers alive, then what is killed. */
export async function carryOut(
  ctx: CarryOutContext,
  log: SweepLog,
  plan: SweepPlan,
  isOver: () => boolean,
): Promise<void> {
  log.did.postponed += await forEachFew(plan.renewals, isOver, async (row) => {
    await attempt(log, "renew", () => renewWorker(ctx, log, row));
  });
  log.did.postponed += await forEachFew(plan.tooLong, isOver, async (row) => {
    if (await attempt(log, "shorten", () => shortenLease(ctx, row))) log.did.leasesShortened += 1;
  });
  await killAll(ctx, log, plan.orphans, "orphansKilled", isOver);
  await killAll(ctx, log, plan.condemned, "condemnedKilled", isOver);
  log.did.postponed += await forEachFew(plan.abandoned, isOver, async (row) => {
    if (await attempt(log, "abandon", () => abandonCreation(ctx, row))) log.did.creationsAbandoned += 1;
  });
  await drainSlots(ctx, log, planTakings(ctx, log, plan), { listed: plan.listed, isOver });
}

async function killAll(
  ctx: CarryOutContext,
  log: SweepLog,
  sandboxes: readonly ListedSandbox[],
  action: keyof SweepCounts,
  isOver: () => boolean,
): Promise<void> {
  log.did.postponed += await forEachFew(sandboxes, isOver, async ({ sandboxId }) => {
    if (await killSandbox(ctx, log, sandboxId)) log.did[action] += 1;
  });
}

/** A slot that is `draining` here was taken before its worker was known. */
const expiries: Readonly<Partial<Record<SlotState, keyof SweepCounts>>> = {
  creating: "creationsExpired",
  leased: "leasesExpired",
  draining: "drainsRedone",
};

function planTakings(ctx: CarryOutContext, log: SweepLog, plan: SweepPlan): Taking[] {
  const missing = plan.missing.map(
    (row): Taking => ({
      action: "deadDrained",
      take: () => drainIfGone(ctx, log, row),
    }),
  );
  const expired = plan.expired.map(
    (seen): Taking => ({
      action: expiries[seen.state] ?? "drainsRedone",
      take: async () => {
        const row = await expireSlot(ctx, seen);
        return row === null ? null : { row, mayHaveMore: seen.state !== "leased" };
      },
    }),
  );
  const drains = plan.drains.map(
    ({ row: seen, why }): Taking => ({
      action: why,
      take: async () => {
        const row = await drainSlot(ctx, seen);
        return row === null ? null : { row, mayHaveMore: false };
      },
    }),
  );
  const unfinished = plan.unfinished.map(
    (row): Taking => ({ action: "drainsRedone", take: async () => ({ row, mayHaveMore: false }) }),
  );
  const ended = plan.ended.map((row): Taking => ({ action: "leasesEnded", take: () => endLease(ctx, row) }));
  return [...unfinished, ...ended, ...expired, ...missing, ...drains];
}

/** Takes a worker from its holder for good: its programs end with the sandbox. */
async function endLease(ctx: CarryOutContext, seen: SlotRow): Promise<TakenSlot | null> {
  const nobody = { runTag: seen.heldForRun ?? "", batchTag: seen.heldForBatch ?? "" };
  const ours = await revokeLease(ctx, seen, nobody);
  const row = ours === null ? null : await releaseDraining(ctx, ours);
  return row === null ? null : { row, mayHaveMore: false };
}
