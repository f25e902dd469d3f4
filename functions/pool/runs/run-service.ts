/**
 * Runs, as their trainers speak of them: registered, kept alive, looked at, finished.
 *
 * Registering creates workers as long as its caller waits; the sweep creates the rest. All ranks of a job register at
 * once: within a container one of them creates at a time, and the others wait for that and find nothing missing.
 */
import type { CreationContext } from "../creation.ts";
import { readPool } from "../pool-view.ts";
import { shortTag } from "../slot-row.ts";
import { createUpToTarget } from "../sweep/creations.ts";
import { finishRun, type RunFinish } from "../sweep/finish-run.ts";
import { newSweepLog, type SweepFault } from "../sweep/report.ts";
import type { SweepContext } from "../sweep/sweep.ts";
import { beatRun, type Heartbeat } from "./heartbeat.ts";
import { getRun, listRuns } from "./read.ts";
import { registerRun } from "./register.ts";
import type { RunRow } from "./run-row.ts";
import type { RunWish } from "./run-wish.ts";

export type RunOpening =
  | {
      readonly kind: "registered";
      readonly run: RunRow;
      readonly isNew: boolean;
      /** Workers that are free for the run or at work for it; null when the pool could not be read. */
      readonly workersReady: number | null;
    }
  | { readonly kind: "run_finished" };

/** All throw the table's faults. */
export interface RunService {
  /** Registers a run, or says the same again, and creates what fits into `createWithinMs`. */
  open(runId: string, wish: RunWish): Promise<RunOpening>;
  beat(runId: string): Promise<Heartbeat>;
  list(): Promise<RunRow[]>;
  read(runId: string): Promise<RunRow | null>;
  /** Takes up to half a minute; also throws `sandbox_unavailable`. */
  finish(runId: string): Promise<RunFinish>;
}

/** How long a registration creates. */
export const createWithinMs = 20_000;

export type ReportFault = (fault: unknown) => void;

/** One per container. */
export function createRunService(ctx: SweepContext, report: ReportFault): RunService {
  const create = createOneAtATime(ctx, report);
  return {
    async open(runId, wish) {
      const registration = await registerRun(ctx, runId, wish);
      if (registration.kind === "run_finished") return registration;
      await create(ctx.clock.nowMs() + createWithinMs);
      return { ...registration, workersReady: await countReady(ctx, registration.run, report) };
    },
    beat: (runId) => beatRun(ctx, runId),
    list: () => listRuns(ctx),
    read: (runId) => getRun(ctx, runId),
    async finish(runId) {
      const finish = await finishRun(ctx, runId);
      if (finish.kind === "finished") reportAll(finish.faults, report);
      return finish;
    },
  };
}

function createOneAtATime(
  ctx: CreationContext,
  report: ReportFault,
): (deadlineAtMs: number) => Promise<void> {
  let underWay: Promise<void> | null = null;
  const pass = async (deadlineAtMs: number) => {
    const log = newSweepLog();
    await createUpToTarget(ctx, log, deadlineAtMs);
    reportAll(log.faults, report);
  };
  return async (deadlineAtMs) => {
    const done = new AbortController();
    const timeIsUp = ctx.clock.sleep(deadlineAtMs - ctx.clock.nowMs(), done.signal);
    while (underWay !== null && ctx.clock.nowMs() < deadlineAtMs) await Promise.race([underWay, timeIsUp]);
    done.abort();
    if (underWay !== null) return;
    underWay = pass(deadlineAtMs).finally(() => {
      underWay = null;
    });
    await underWay;
  };
}

/** A registration is done whether or not the pool can be counted. */
async function countReady(ctx: SweepContext, run: RunRow, report: ReportFault): Promise<number | null> {
  const runTag = shortTag(run.runId);
  try {
    const { slots } = await readPool(ctx);
    const serves = slots.filter(
      (row) =>
        row.supervisorVersion === ctx.settings.supervisorVersion &&
        (row.state === "ready" || (row.state === "leased" && row.heldForRun === runTag)),
    );
    return Math.min(run.workers, serves.length);
  } catch (fault) {
    report(fault);
    return null;
  }
}

function reportAll(faults: readonly SweepFault[], report: ReportFault): void {
  for (const fault of faults) report(fault);
}
