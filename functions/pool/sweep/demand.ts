/**
 * How many workers there should be, and which of those there are count.
 *
 * A worker near the end of its life does not count where creations are counted, so its replacement is created first;
 * it counts where surplus is counted, so it goes once the replacement is there, being first in line.
 */
import type { RunRow } from "../runs/run-row.ts";
import { liveRuns, targetWorkers } from "../runs/run-row.ts";
import type { PoolSettings } from "../settings.ts";
import { type SlotRow, shortTag } from "../slot-row.ts";

export interface Demand {
  readonly settings: PoolSettings;
  readonly runs: readonly RunRow[];
  readonly slots: readonly SlotRow[];
  readonly nowMs: number;
}

/** Two passes of the sweep and the creation itself. */
const replacementTakesMs = 150_000;

/** From when a worker is about to be replaced. */
function isWearing({ settings, nowMs }: Demand, row: SlotRow): boolean {
  // A new worker has two thirds of the plan's life left at least: it must not be due at once.
  const aheadMs = Math.min(settings.minRemainingMs + replacementTakesMs, settings.lifeMs / 2);
  return row.maxAtMs !== undefined && row.maxAtMs <= nowMs + aheadMs;
}

/** A worker that no handler would take any more. */
export function isWorn({ settings, nowMs }: Demand, row: SlotRow): boolean {
  return row.maxAtMs !== undefined && row.maxAtMs <= nowMs + settings.minRemainingMs;
}

/** Whether its creator, holder or drainer is past its time, by more than clocks may differ. */
export function isExpired({ settings, nowMs }: Demand, row: SlotRow): boolean {
  const isTaken = row.state === "creating" || row.state === "leased" || row.state === "draining";
  return isTaken && (row.leaseUntilMs ?? 0) < nowMs - settings.graceMs;
}

/** A batch holds a lease for a quarter of an hour at most; older runs need not be looked for. */
const lookBackMs = 3_600_000;

/** Leases of runs that were finished: nobody wants their results. */
export function endedLeases({ runs, slots, nowMs }: Demand): SlotRow[] {
  const finished = runs.filter(({ finishedAtMs = 0 }) => finishedAtMs > nowMs - lookBackMs);
  const tags = new Set(finished.map(({ runId }) => shortTag(runId)));
  return slots.filter((row) => row.state === "leased" && tags.has(row.heldForRun ?? ""));
}

/** The slots that have a worker for this version's handlers, or are about to, and whose takers are there to stay. */
function servingSlots(demand: Demand): SlotRow[] {
  const { slots, supervisorVersion } = demand.settings;
  const ended = new Set(endedLeases(demand));
  return demand.slots.filter(
    (row) =>
      (row.state === "creating" || row.state === "ready" || row.state === "leased") &&
      row.slot < slots &&
      row.supervisorVersion === supervisorVersion &&
      !isExpired(demand, row) &&
      !ended.has(row),
  );
}

/** Workers that are there, free or held. */
export function readyWorkers(demand: Demand): SlotRow[] {
  return servingSlots(demand).filter((row) => row.state !== "creating");
}

export function targetOf({ runs, settings, nowMs }: Demand): number {
  return targetWorkers(runs, settings.slots, nowMs);
}

/** Workers still to be created, as far as there are empty slots. */
export function shortfall(demand: Demand): number {
  const lasting = servingSlots(demand).filter((row) => !isWearing(demand, row)).length;
  const empty = demand.slots.filter(
    (row) => row.state === "empty" && row.slot < demand.settings.slots,
  ).length;
  return Math.max(0, Math.min(targetOf(demand) - lasting, empty));
}

function liveTags({ runs, nowMs }: Demand): ReadonlySet<string> {
  return new Set(liveRuns(runs, nowMs).map(({ runId }) => shortTag(runId)));
}

/** Slots above the target in which a worker is being created for a run that is over. */
export function unwantedCreations(demand: Demand): SlotRow[] {
  const serving = servingSlots(demand);
  const above = Math.max(0, serving.length - targetOf(demand));
  const live = liveTags(demand);
  return serving
    .filter((row) => row.state === "creating" && !live.has(row.createdForRun ?? ""))
    .slice(0, above);
}

/** The run that lacks most workers; for whom the next one is created. */
export function neediestRun(demand: Demand): string | null {
  const serving = servingSlots(demand);
  const lacks = liveRuns(demand.runs, demand.nowMs).map((run) => {
    const runTag = shortTag(run.runId);
    const has = serving.filter((row) => row.createdForRun === runTag).length;
    return { runId: run.runId, lacking: run.workers - has };
  });
  return lacks.toSorted((one, other) => other.lacking - one.lacking)[0]?.runId ?? null;
}

/**
 * Free workers above the target, in the order in which they should go: near their end, created for a run that is over,
 * longest idle. All passes agree on it, so two at once don't take out twice as many.
 */
export function surplusWorkers(demand: Demand): SlotRow[] {
  const serving = readyWorkers(demand);
  const above = serving.length - targetOf(demand);
  if (above <= 0) return [];
  const live = liveTags(demand);
  const rank = (row: SlotRow) => (isWearing(demand, row) ? 0 : live.has(row.createdForRun ?? "") ? 2 : 1);
  const idleSince = (row: SlotRow) => row.lastUsedAtMs ?? row.bornAtMs ?? 0;
  return serving
    .filter((row) => row.state === "ready")
    .toSorted(
      (one, other) => rank(one) - rank(other) || idleSince(one) - idleSince(other) || one.slot - other.slot,
    )
    .slice(0, above);
}
