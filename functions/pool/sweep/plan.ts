/**
 * What one pass has to do, told from one look at the provider and, after it, one at the table. Pure.
 *
 * Without a list nothing is planned that ends in a kill: what is missing from a list that failed may be there.
 */
import { isMissing, type Listing } from "../ending.ts";
import type { ListedSandbox } from "../ports.ts";
import { type SlotRow, type WorkerRow, workerOf } from "../slot-row.ts";
import { believedTtlAtMs, renewalMs } from "../slots/renew.ts";
import { isTooLong } from "../slots/shorten.ts";
import {
  type Demand,
  endedLeases,
  isExpired,
  isWorn,
  surplusWorkers,
  targetOf,
  unwantedCreations,
} from "./demand.ts";
import { findCondemned, findOrphans } from "./known.ts";

export type DrainReason = "wornDrained" | "versionDrained" | "surplusDrained";

export interface SweepPlan {
  readonly orphans: readonly ListedSandbox[];
  /** Sandboxes that land in slots which are being drained: whoever drains, they are of no use to anybody. */
  readonly condemned: readonly ListedSandbox[];
  /** Slots that are being drained of a worker which they name: no other sandbox can be there, so anybody may end it. */
  readonly unfinished: readonly SlotRow[];
  /** Slots in which a worker is being created that no run wants any more. */
  readonly abandoned: readonly SlotRow[];
  /** Leases of runs that were finished. */
  readonly ended: readonly SlotRow[];
  /** Slots whose lease ends later than any may: of a clock that is fast. */
  readonly tooLong: readonly SlotRow[];
  /** Slots whose creator, holder or drainer is past its time. */
  readonly expired: readonly SlotRow[];
  /** Free workers whose sandbox the list doesn't have: to be asked for by name. */
  readonly missing: readonly WorkerRow[];
  readonly drains: readonly { readonly row: SlotRow; readonly why: DrainReason }[];
  readonly renewals: readonly WorkerRow[];
  /** All that the provider listed: a later list that lacks one of them says that it is gone. */
  readonly listed: ReadonlySet<string>;
}

const nothing: SweepPlan = {
  orphans: [],
  condemned: [],
  unfinished: [],
  abandoned: [],
  ended: [],
  tooLong: [],
  expired: [],
  missing: [],
  drains: [],
  renewals: [],
  listed: new Set(),
};

/** Renewed below this: each worker about every 200 s. */
const renewBelowMs = 400_000;

export function planSweep(demand: Demand, listing: Listing | null): SweepPlan {
  const renewals = targetOf(demand) > 0 ? dueRenewals(demand) : [];
  if (listing === null) {
    return { ...nothing, renewals };
  }
  const drains = planDrains(demand);
  const unfinished = demand.slots.filter((row) => row.state === "draining" && row.sandboxId !== undefined);
  const expired = demand.slots.filter((row) => isExpired(demand, row) && !unfinished.includes(row));
  const ended = endedLeases(demand);
  const leaving = new Set([...drains.map(({ row }) => row), ...expired, ...ended].map(({ slot }) => slot));
  const missing = missingWorkers(demand, listing).filter(({ slot }) => !leaving.has(slot));
  // Asking for a missing one is a renewal.
  for (const { slot } of missing) leaving.add(slot);
  return {
    orphans: findOrphans(listing.sandboxes, demand.slots),
    condemned: findCondemned(listing.sandboxes, demand.slots),
    unfinished,
    abandoned: unwantedCreations(demand),
    ended,
    tooLong: demand.slots.filter((row) => isTooLong(demand, row, demand.nowMs)),
    expired,
    missing,
    drains,
    renewals: renewals.filter(({ slot }) => !leaving.has(slot)),
    listed: new Set(listing.sandboxes.map(({ sandboxId }) => sandboxId)),
  };
}

function missingWorkers({ slots }: Demand, listing: Listing): WorkerRow[] {
  return slots.flatMap((row) => {
    const worker = row.state === "ready" && isMissing(row, listing) ? workerOf(row) : null;
    return worker === null ? [] : [worker];
  });
}

function planDrains(demand: Demand): SweepPlan["drains"] {
  const surplus = new Set(surplusWorkers(demand));
  return demand.slots.flatMap((row) => {
    const why = row.state === "ready" ? drainReason(demand, row, surplus) : null;
    return why === null ? [] : [{ row, why }];
  });
}

function drainReason(demand: Demand, row: SlotRow, surplus: ReadonlySet<SlotRow>): DrainReason | null {
  const { settings } = demand;
  if (row.supervisorVersion !== settings.supervisorVersion) return "versionDrained";
  if (isWorn(demand, row)) return "wornDrained";
  // A pool that was made smaller has slots above its end.
  return surplus.has(row) || row.slot >= settings.slots ? "surplusDrained" : null;
}

function dueRenewals({ slots, settings, nowMs }: Demand): WorkerRow[] {
  return slots.flatMap((row) => {
    const worker = row.state === "ready" || row.state === "leased" ? workerOf(row) : null;
    if (worker === null || believedTtlAtMs(settings, worker, nowMs) >= nowMs + renewBelowMs) return [];
    return renewalMs(settings, worker, nowMs) === null ? [] : [worker];
  });
}
