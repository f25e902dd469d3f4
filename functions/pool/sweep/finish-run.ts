/**
 * Finishing a run, and being sure that nothing of it is left.
 *
 * The run's word is written first, which lowers the target and stops its batches from beginning. Then, again and again
 * until the provider's own list agrees or the time is used up: its leases are taken from their holders, and free
 * workers above the target are drained, its own first; killed, emptied. Creations that are under way for it are
 * abandoned, and given a moment to land and be killed.
 */
import { Fault } from "../../rewards/faults.ts";
import type { Listing } from "../ending.ts";
import { markFinished } from "../runs/finish.ts";
import { getRun, getRunRow } from "../runs/read.ts";
import type { RunRow } from "../runs/run-row.ts";
import { carryOut } from "./carry-out.ts";
import type { Demand } from "./demand.ts";
import { shareIdleTime } from "./idle-time.ts";
import { isKnown } from "./known.ts";
import { planSweep, type SweepPlan } from "./plan.ts";
import { attempt, newSweepLog, type SweepFault, type SweepLog } from "./report.ts";
import { listSandboxes, readDemand, readWishes, type SweepContext } from "./sweep.ts";

export type RunFinish =
  | {
      readonly kind: "finished";
      readonly run: RunRow;
      /** What the provider still lists beyond what other runs need; empty unless the time was used up. */
      readonly remainingSandboxes: readonly string[];
      readonly faults: readonly SweepFault[];
    }
  | { readonly kind: "run_not_found" };

/** How long it may take. */
export const finishWithinMs = 30_000;
const betweenRoundsMs = 500;
/** How long a sandbox usually takes to appear, when its creation was abandoned. */
const landingMs = 5_000;

/**
 * Finishes a run; again, the same answer, but for batches that were about to be answered at the first time: what was
 * found not to be finished a moment ago may still be counted.
 *
 * Throws the table's faults while nothing was done yet or when the totals can't be read, and `sandbox_unavailable` when
 * the provider never told what it has; whatever else goes wrong, the answer comes late or has sandboxes remain.
 */
export async function finishRun(
  ctx: SweepContext,
  runId: string,
  options: { readonly deadlineAtMs?: number } = {},
): Promise<RunFinish> {
  const deadlineAtMs = options.deadlineAtMs ?? ctx.clock.nowMs() + finishWithinMs;
  const log = newSweepLog();
  const known = await getRunRow(ctx, runId);
  if (known === null) return { kind: "run_not_found" };
  if (known.finishedAtMs === undefined) {
    // It pays for nothing more once it is finished.
    await attempt(log, "share idle time", async () => shareIdleTime(ctx, await readDemand(ctx)));
  }
  if ((await markFinished(ctx, runId)) === null) return { kind: "run_not_found" };
  const remainingSandboxes = await clearAway(ctx, log, deadlineAtMs);
  const run = await getRun(ctx, runId);
  if (run === null) return { kind: "run_not_found" };
  return { kind: "finished", run, remainingSandboxes, faults: log.faults };
}

/** Clears until the provider's list agrees; what it still has when there is no more time. */
async function clearAway(ctx: SweepContext, log: SweepLog, deadlineAtMs: number): Promise<string[]> {
  const isOver = () => ctx.clock.nowMs() >= deadlineAtMs;
  let remaining: string[] | null = null;
  let notBeforeMs = 0;
  for (let round = 0; ; round += 1) {
    if (round > 1) await ctx.clock.sleep(betweenRoundsMs);
    const listing = await listSandboxes(ctx, log);
    const demand = await attempt(log, "read", () => readWishes(ctx));
    if (listing !== null && demand !== undefined) {
      const plan = planSweep(demand, listing);
      remaining = remainingOf(demand, plan, listing);
      const isClear = remaining.length === 0 && plan.ended.length === 0 && plan.abandoned.length === 0;
      const mayLand =
        ctx.clock.nowMs() < notBeforeMs && demand.slots.some(({ state }) => state === "draining");
      if (isClear && !mayLand) {
        if (plan.unfinished.length > 0) await carryOut(ctx, log, plan, isOver); // their kills got no answer
        return [];
      }
      if (plan.abandoned.length > 0) notBeforeMs = Math.min(deadlineAtMs, ctx.clock.nowMs() + landingMs);
      if (!isOver()) await carryOut(ctx, log, plan, isOver);
    }
    if (isOver()) {
      if (remaining === null || remaining.length === 0) throw unsure(log);
      return remaining;
    }
  }
}

/** No list was had after the last change, and to say that nothing remains one must have seen it. */
function unsure({ faults }: SweepLog): Fault {
  const why = faults.at(-1)?.detail ?? "there was no time";
  return new Fault("sandbox_unavailable", `which sandboxes remain is not known: ${why}`);
}

/** Listed sandboxes that no run needs: neither held for a live one, nor within the target. */
function remainingOf({ slots }: Demand, plan: SweepPlan, { sandboxes }: Listing): string[] {
  const leaving = new Set([
    ...plan.drains.map(({ row }) => row),
    ...plan.abandoned,
    ...plan.ended,
    ...plan.expired,
    ...slots.filter(({ state }) => state === "draining"),
  ]);
  const kept = new Map(slots.map((row) => [row.slot, leaving.has(row) ? undefined : row]));
  return sandboxes
    .filter((sandbox) => !isKnown(sandbox, kept.get(sandbox.slot)))
    .map(({ sandboxId }) => sandboxId);
}
