/**
 * The sweep: one pass that brings the pool back to what it should be, whatever happened to those who changed it.
 *
 * Theory of operation. Every minute, and by several at once if it so happens. A pass decides from what it reads, and
 * each decision is carried out by a conditional write that names what was read, so a pass that overlaps with another,
 * with handlers, or with its own past self finds its writes refused and does nothing. A pass that dies leaves slots
 * `draining` or `creating` with a lease, which a later pass takes back. Nothing is remembered between passes.
 *
 * The order: the provider is listed, then the table is read (see `known.ts`); first what keeps workers alive, then
 * what is killed, then what is created, for which draining has made room. Without a list or a read, nothing is killed.
 */
import type { CreationContext } from "../creation.ts";
import type { Listing } from "../ending.ts";
import { readPool } from "../pool-view.ts";
import type { Sandboxes } from "../ports.ts";
import { foldLedger } from "../runs/fold-ledger.ts";
import { pruneLanes } from "../runs/prune-lanes.ts";
import { listRunRows, listRuns, readRunRows } from "../runs/read.ts";
import { liveRuns } from "../runs/run-row.ts";
import { type SlotState, slotStates } from "../slot-row.ts";
import { carryOut } from "./carry-out.ts";
import { createUpToTarget } from "./creations.ts";
import { type Demand, targetOf } from "./demand.ts";
import { shareIdleTime } from "./idle-time.ts";
import { forEachFew } from "./many.ts";
import { planSweep } from "./plan.ts";
import { attempt, newSweepLog, type SweepLog, type SweepReport } from "./report.ts";

export type SweepContext = CreationContext & { readonly sandboxes: Sandboxes };

export interface SweepOptions {
  /** Nothing new is started from here on; a call that is under way is waited for. */
  readonly deadlineAtMs: number;
  /** Aborted when the process must end: the same, at once. */
  readonly signal?: AbortSignal;
}

/**
 * One pass. Never throws: what went wrong is in the report, which is made to be logged as one line.
 *
 * The caller keeps some seconds between the deadline and its own end.
 */
export async function sweepPool(ctx: SweepContext, options: SweepOptions): Promise<SweepReport> {
  const startedAtMs = ctx.clock.nowMs();
  const log = newSweepLog();
  const isOver = () => options.signal?.aborted === true || ctx.clock.nowMs() >= options.deadlineAtMs;
  const listing = await listSandboxes(ctx, log);
  const demand = await attempt(log, "read", () => readDemand(ctx));
  let idleMs = 0;
  if (demand !== undefined) {
    await carryOut(ctx, log, planSweep(demand, listing), isOver);
    idleMs = (await attempt(log, "share idle time", () => shareIdleTime(ctx, demand))) ?? 0;
    await tidyRuns(ctx, log, isOver);
    if (listing !== null) await createUpToTarget(ctx, log, options);
  }
  return {
    did: log.did,
    found: demand === undefined ? null : countStates(demand),
    listed: listing?.sandboxes.length ?? null,
    liveRuns: demand === undefined ? 0 : liveRuns(demand.runs, demand.nowMs).length,
    target: demand === undefined ? 0 : targetOf(demand),
    idleMs,
    wallMs: ctx.clock.nowMs() - startedAtMs,
    faults: log.faults,
    faultCount: log.faultCount,
  };
}

/** Brings the runs' rows up to what their ledgers say. */
async function tidyRuns(ctx: SweepContext, log: SweepLog, isOver: () => boolean): Promise<void> {
  const rows = (await attempt(log, "read runs", () => readRunRows(ctx))) ?? [];
  await forEachFew(rows, isOver, async (run) => {
    await attempt(log, "fold ledger", () => foldLedger(ctx, run));
    await attempt(log, "prune lanes", () => pruneLanes(ctx, run, ctx.clock.nowMs()));
  });
}

/** The provider's list; null when it failed. */
export async function listSandboxes(
  ctx: Pick<SweepContext, "clock" | "sandboxes" | "poolId">,
  log: SweepLog,
): Promise<Listing | null> {
  const askedAtMs = ctx.clock.nowMs();
  const sandboxes = await attempt(log, "list", async () => ctx.sandboxes.list(await ctx.poolId()));
  return sandboxes === undefined ? null : { sandboxes, askedAtMs };
}

/** What the table says, whole. Throws its faults. */
export function readDemand(ctx: SweepContext): Promise<Demand> {
  return readWith(ctx, listRuns);
}

/** The same without what is in the runs' ledgers only: their totals are not exact. */
export function readWishes(ctx: SweepContext): Promise<Demand> {
  return readWith(ctx, listRunRows);
}

async function readWith(ctx: SweepContext, list: typeof listRuns): Promise<Demand> {
  // Runs last: a lease that is younger than what its run's row said would pass for one of a finished run.
  const { slots } = await readPool(ctx);
  const runs = await list(ctx);
  return { settings: ctx.settings, runs, slots, nowMs: ctx.clock.nowMs() };
}

function countStates({ slots }: Demand): Record<SlotState, number> {
  const counts = Object.fromEntries(slotStates.map((state) => [state, 0])) as Record<SlotState, number>;
  for (const { state } of slots) counts[state] += 1;
  return counts;
}
