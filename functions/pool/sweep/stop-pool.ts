/**
 * Stop: every run ends, every sandbox of the pool dies, now.
 *
 * For a person who wants to stop paying, whatever state the pool is in. The runs' word is written first, so that nothing
 * more is leased or created for them; then all that the provider lists is killed, whoever holds it. A creation that is
 * under way is abandoned, and its sandbox given a moment to land. What the rows still say is tidied as in any sweep.
 *
 * It does not close the endpoint: who sends a batch afterwards is served. The answer then has what remains.
 */

import type { Listing } from "../ending.ts";
import { markFinished } from "../runs/finish.ts";
import { listRunRows } from "../runs/read.ts";
import { abandonCreation } from "../slots/drain.ts";
import { carryOut } from "./carry-out.ts";
import { killSandbox } from "./drains.ts";
import { forEachFew } from "./many.ts";
import { planSweep } from "./plan.ts";
import { attempt, newSweepLog, type SweepFault, type SweepLog } from "./report.ts";
import { listSandboxes, readWishes, type SweepContext } from "./sweep.ts";

export interface PoolStop {
  /** Runs that were not finished before. */
  readonly endedRuns: readonly string[];
  readonly killedSandboxes: number;
  /** What the provider still lists; null when it never told. */
  readonly remainingSandboxes: readonly string[] | null;
  readonly faults: readonly SweepFault[];
}

const betweenRoundsMs = 1_000;
/** How long a sandbox usually takes to appear, when its creation was abandoned. */
const landingMs = 10_000;

/** Throws the table's faults only while nothing was done yet. */
export async function stopPool(
  ctx: SweepContext,
  { deadlineAtMs }: { deadlineAtMs: number },
): Promise<PoolStop> {
  const log = newSweepLog();
  const endedRuns = await endRuns(ctx, log);
  const killed = new Set<string>();
  const isOver = () => ctx.clock.nowMs() >= deadlineAtMs;
  let quietFromMs = 0;
  for (;;) {
    const listing = await listSandboxes(ctx, log);
    await killAll(ctx, log, listing, killed);
    if (await tidy(ctx, log, listing, isOver)) quietFromMs = ctx.clock.nowMs() + landingMs;
    const isEmpty = listing?.sandboxes.length === 0;
    if ((isEmpty && ctx.clock.nowMs() >= quietFromMs) || isOver()) {
      return {
        endedRuns,
        killedSandboxes: killed.size,
        remainingSandboxes: remaining(listing, killed),
        faults: log.faults,
      };
    }
    await ctx.clock.sleep(betweenRoundsMs);
  }
}

function remaining(listing: Listing | null, killed: ReadonlySet<string>): string[] | null {
  if (listing === null) return null;
  return listing.sandboxes.map(({ sandboxId }) => sandboxId).filter((sandboxId) => !killed.has(sandboxId));
}

/** Expired runs too: their batches may still hold workers. */
async function endRuns(ctx: SweepContext, log: SweepLog): Promise<string[]> {
  const open = (await listRunRows(ctx)).filter(({ finishedAtMs }) => finishedAtMs === undefined);
  const ended: string[] = [];
  await forEachFew(
    open,
    () => false,
    async ({ runId }) => {
      const run = await attempt(log, "finish run", () => markFinished(ctx, runId));
      if (run !== undefined && run !== null) ended.push(runId);
    },
  );
  return ended.toSorted();
}

async function killAll(ctx: SweepContext, log: SweepLog, listing: Listing | null, killed: Set<string>) {
  await forEachFew(
    listing?.sandboxes ?? [],
    () => false,
    async ({ sandboxId }) => {
      if (await killSandbox(ctx, log, sandboxId)) killed.add(sandboxId);
    },
  );
}

/** Brings the rows up to what was done; whether a sandbox may still be on its way. */
async function tidy(
  ctx: SweepContext,
  log: SweepLog,
  listing: Listing | null,
  isOver: () => boolean,
): Promise<boolean> {
  const demand = await attempt(log, "read", () => readWishes(ctx));
  if (demand === undefined) return true;
  const creating = demand.slots.filter(({ state }) => state === "creating");
  await forEachFew(
    creating,
    () => false,
    async (row) => {
      if (await attempt(log, "abandon", () => abandonCreation(ctx, row))) log.did.creationsAbandoned += 1;
    },
  );
  await carryOut(ctx, log, planSweep(demand, listing), isOver);
  return creating.length > 0;
}
