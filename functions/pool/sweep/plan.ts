/**
 * What one pass has to do, told from one look at the provider and, after it, one at the table. Pure.
 *
 * Without a list nothing is planned that ends in a kill: what is missing from a list that failed may be there.
 */
import type { ListedSandbox } from "../ports.ts";
import { type SlotRow, type WorkerRow, workerOf } from "../slot-row.ts";
import { renewalMs } from "../slots/renew.ts";
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

/** The provider's list, and when it was asked for. */
export interface Listing {
  readonly sandboxes: readonly ListedSandbox[];
  readonly askedAtMs: number;
}

export type DrainReason = "wornDrained" | "versionDrained" | "surplusDrained";

export interface SweepPlan {
  readonly orphans: readonly ListedSandbox[];
  /** Sandboxes of slots that are being drained: whoever drains, they are of no use to anybody. */
  readonly condemned: readonly ListedSandbox[];
  /** Slots in which a worker is being created that no run wants any more. */
  readonly abandoned: readonly SlotRow[];
  /** Leases of runs that were finished. */
  readonly ended: readonly SlotRow[];
  /** Slots whose creator, holder or drainer is past its time. */
  readonly expired: readonly SlotRow[];
  /** Free workers whose sandbox the list doesn't have: to be asked for by name. */
  readonly missing: readonly WorkerRow[];
  readonly drains: readonly { readonly row: SlotRow; readonly why: DrainReason }[];
  readonly renewals: readonly WorkerRow[];
}

const nothing: SweepPlan = {
  orphans: [],
  condemned: [],
  abandoned: [],
  ended: [],
  expired: [],
  missing: [],
  drains: [],
  renewals: [],
};

/** Renewed below this: each worker about every 200 s. */
const renewBelowMs = 400_000;
/** A list may lag behind creations; one that misses an older worker misses the worker. */
const listLagMs = 60_000;

export function planSweep(demand: Demand, listing: Listing | null): SweepPlan {
  const renewals = targetOf(demand) > 0 ? dueRenewals(demand) : [];
  if (listing === null) {
    return { ...nothing, renewals };
  }
  const drains = planDrains(demand);
  const expired = demand.slots.filter((row) => isExpired(demand, row));
  const ended = endedLeases(demand);
  const leaving = new Set([...drains.map(({ row }) => row), ...expired, ...ended].map(({ slot }) => slot));
  const missing = missingWorkers(demand, listing).filter(({ slot }) => !leaving.has(slot));
  // Asking for a missing one is a renewal.
  for (const { slot } of missing) leaving.add(slot);
  return {
    orphans: findOrphans(listing.sandboxes, demand.slots),
    condemned: findCondemned(listing.sandboxes, demand.slots),
    abandoned: unwantedCreations(demand),
    ended,
    expired,
    missing,
    drains,
    renewals: renewals.filter(({ slot }) => !leaving.has(slot)),
  };
}

function missingWorkers({ slots }: Demand, { sandboxes, askedAtMs }: Listing): WorkerRow[] {
  const ids = new Set(sandboxes.map(({ sandboxId }) => sandboxId));
  return slots.flatMap((row) => {
    const worker = row.state === "ready" ? workerOf(row) : null;
    const isOld = (row.bornAtMs ?? 0) < askedAtMs - listLagMs;
    return worker !== null && isOld && !ids.has(worker.sandboxId) ? [worker] : [];
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
    if (worker === null || worker.ttlAtMs >= nowMs + renewBelowMs) return [];
    return renewalMs(settings, worker, nowMs) === null ? [] : [worker];
  });
}
