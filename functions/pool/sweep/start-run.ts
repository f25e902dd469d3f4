/**
 * Starting a run: it is registered, and as many of its workers are created as there is time for; the sweep creates the
 * rest. Sixteen ranks may say it at once: the pace lets one creation through at a time, and each looks again before.
 */
import type { CreationContext } from "../creation.ts";
import { readPool } from "../pool-view.ts";
import { type Registration, registerRun } from "../runs/register.ts";
import type { RunRow } from "../runs/run-row.ts";
import type { RunWish } from "../runs/run-wish.ts";
import type { SlotRow } from "../slot-row.ts";
import { createUpToTarget } from "./creations.ts";
import { readyWorkers } from "./demand.ts";
import { newSweepLog, noteFault, type SweepFault } from "./report.ts";

export type RunStart =
  | {
      readonly kind: "started";
      readonly run: RunRow;
      readonly isNew: boolean;
      /** Workers that are there by now, as many as it wants at most. */
      readonly workersReady: number;
      /** Why there aren't more, if that was somebody's fault. */
      readonly faults: readonly SweepFault[];
    }
  | Exclude<Registration, { readonly kind: "registered" }>;

/** How long it may take. */
export const startWithinMs = 20_000;
const lookAgainMs = 500;

/** Starts a run, or says it again. The wish must have no `runProblems`. Throws the table's faults of registering only. */
export async function startRun(
  ctx: CreationContext,
  runId: string,
  wish: RunWish,
  options: { readonly deadlineAtMs?: number; readonly signal?: AbortSignal } = {},
): Promise<RunStart> {
  const deadlineAtMs = options.deadlineAtMs ?? ctx.clock.nowMs() + startWithinMs;
  const registration = await registerRun(ctx, runId, wish);
  if (registration.kind !== "registered") return registration;
  const { run, isNew } = registration;
  const log = newSweepLog();
  const isOver = () => options.signal?.aborted === true || ctx.clock.nowMs() >= deadlineAtMs;
  let workersReady = 0;
  try {
    for (;;) {
      await createUpToTarget(ctx, log, { ...options, deadlineAtMs });
      const { slots } = await readPool(ctx);
      workersReady = countReady(ctx, run, slots);
      // What others create for the same target is waited for as well.
      const isComing = workersReady < run.workers && slots.some(({ state }) => state === "creating");
      if (!isComing || log.faultCount > 0 || isOver()) break;
      await ctx.clock.sleep(Math.min(lookAgainMs, deadlineAtMs - ctx.clock.nowMs()), options.signal);
    }
  } catch (error) {
    noteFault(log, "read", error);
  }
  return { kind: "started", run, isNew, workersReady, faults: log.faults };
}

function countReady(ctx: CreationContext, run: RunRow, slots: readonly SlotRow[]): number {
  const ready = readyWorkers({ settings: ctx.settings, runs: [], slots, nowMs: ctx.clock.nowMs() });
  return Math.min(run.workers, ready.length);
}
