/**
 * Grading for a run: the run is alive while its batch is graded, and what the batch did is in its ledger before the
 * batch's answer is complete. Workers are leased in the batch's own name.
 */
import { setMaxListeners } from "node:events";
import type { BatchClaim } from "../pool/batches/batch-record.ts";
import type { HeldBatch, HoldBatchContext } from "../pool/batches/held-batch.ts";
import type { LeaseSource } from "../pool/lease-source.ts";
import { keepRunAlive } from "../pool/runs/keep-alive.ts";
import { getRunRow } from "../pool/runs/read.ts";
import { defaultRunId, type RunRow } from "../pool/runs/run-row.ts";
import { rememberRuns } from "../pool/runs/target.ts";
import type { SlotContext } from "../pool/slots/write.ts";
import { type BatchOrigin, createAdmission, type Refused } from "./admission.ts";
import type { Batch, BatchAnswer, BatchHooks, GradeBatch, SampleResult } from "./batch.ts";
import { type BatchAccount, createBatchAccount, runFinished } from "./batch-account.ts";
import { createBatchGrader } from "./batch-grader.ts";
import { Fault, whyStopped } from "./faults.ts";
import { joinSignals } from "./joined-signal.ts";
import { gradeUnderKey } from "./recorded-grading.ts";
import { type RunEntries, rememberDefaultRun } from "./run-entries.ts";
import { createUnderWay } from "./under-way.ts";
import { watchWorkers } from "./watched-workers.ts";

export interface RunGraderDeps {
  readonly leases: LeaseSource;
  readonly pool: SlotContext & HoldBatchContext;
  /** Makes ids that never come twice. */
  readonly newId: () => string;
  /** Dollars for so much worker time. */
  readonly costUsd: (workerSeconds: number) => number;
  /** Told what went wrong where the batch goes on all the same. */
  readonly report: (fault: unknown) => void;
}

/** `gradeBatch` is for this batch alone, and must be called. */
export type Admission = { readonly kind: "admitted"; readonly gradeBatch: GradeBatch } | Refused;

export interface RunGrader {
  /**
   * Lets a batch of the run begin; the grader that it gets is for that batch alone. Throws the table's faults, and
   * `stopping` or `cancelled` when it was told to stop.
   */
  admitBatch(origin: BatchOrigin): Promise<Admission>;
  /**
   * Ends all batches as `stopping`, also those still to come; resolves once nothing of them runs, their workers are back
   * and their records say that they are over.
   */
  stop(): Promise<void>;
}

/** One per container. The graders throw what `GradeBatch` throws. */
export function createRunGrader(deps: RunGraderDeps): RunGrader {
  const { pool, report } = deps;
  const stopping = new AbortController();
  // Every batch listens to it, and there may be more than Node's default takes for a leak.
  setMaxListeners(0, stopping.signal);
  const underWay = createUnderWay();
  const entries = rememberDefaultRun(pool);
  const admit = createAdmission({ pool, entries, underWay, report });
  const shared: Shared = {
    deps,
    entries,
    readTarget: rememberRuns(pool, pool.settings.slots).targetWorkers,
    async gradeUntilStopped(grade, hooks) {
      const { signal, leave } = joinSignals(hooks.signal, stopping.signal);
      return grade({ ...hooks, signal }).finally(leave);
    },
  };
  return {
    async admitBatch(origin) {
      if (stopping.signal.aborted) throw whyStopped(stopping.signal);
      const askedAtMs = pool.clock.nowMs();
      const { signal, leave } = joinSignals(origin.signal, stopping.signal);
      const end = underWay.begin(); // until the batch is graded
      let isAdmitted = false;
      try {
        const entered = await admit(origin, signal);
        if (entered.kind !== "entered") return entered;
        isAdmitted = true;
        const gradeBatch = createGrader(shared, entered, askedAtMs);
        return { kind: "admitted", gradeBatch: (batch, hooks) => gradeBatch(batch, hooks).finally(end) };
      } finally {
        leave();
        if (!isAdmitted) end();
      }
    },
    async stop() {
      stopping.abort(serviceStops());
      await underWay.idle();
    },
  };
}

/** Why a process that is told to stop has no answer for a batch. Whoever sends it again has it graded by the next one. */
function serviceStops(): Fault {
  const detail =
    "The service is being stopped or restarted before the batch was graded, and nothing of it was kept. Send it again, with the same Idempotency-Key if it has one.";
  return new Fault("stopping", detail);
}

interface Shared {
  readonly deps: RunGraderDeps;
  readonly entries: RunEntries;
  readonly readTarget: () => Promise<number>;
  /** Grades until nobody waits any more, or everything stops. */
  gradeUntilStopped(
    grade: (hooks: BatchHooks) => Promise<BatchAnswer>,
    hooks: BatchHooks,
  ): Promise<BatchAnswer>;
}

/** The grader of one admitted batch, whose deadline counts from when it was asked for. */
function createGrader(
  { deps, gradeUntilStopped, ...shared }: Shared,
  { run, claim }: { readonly run: RunRow; readonly claim: BatchClaim | null },
  askedAtMs: number,
): GradeBatch {
  return (wanted, hooks) => {
    const beganAtMs = deps.pool.clock.nowMs();
    const batch = shortenBy(wanted, beganAtMs - askedAtMs);
    const job = { ...shared, run, beganAtMs, batchId: claim?.batchId ?? deps.newId() };
    return gradeUntilStopped((joined) => gradeAdmitted(deps, job, claim, batch, joined), hooks);
  };
}

interface BatchJob {
  readonly run: RunRow;
  readonly beganAtMs: number;
  /** Its key's, or one that only its workers know it by. */
  readonly batchId: string;
  /** The record under its key. */
  readonly held: HeldBatch | null;
  readonly entries: RunEntries;
  readonly readTarget: () => Promise<number>;
}

function shortenBy(batch: Batch, tookMs: number): Batch {
  return tookMs > 0 ? { ...batch, deadlineMs: Math.max(1, batch.deadlineMs - tookMs) } : batch;
}

function gradeAdmitted(
  deps: RunGraderDeps,
  job: Omit<BatchJob, "held">,
  claim: BatchClaim | null,
  batch: Batch,
  hooks: BatchHooks,
): Promise<BatchAnswer> {
  const account = createBatchAccount(deps, {
    runId: job.run.runId,
    attemptId: claim === null ? job.batchId : `${claim.batchId}#${claim.fence}`,
    hasKey: claim !== null,
  });
  if (claim === null) return gradeForRun(deps, { ...job, held: null }, account, batch, hooks);
  return gradeUnderKey(deps.pool, claim, hooks, {
    ...account,
    grade: (held, signal) => gradeForRun(deps, { ...job, held }, account, batch, { ...hooks, signal }),
    report: deps.report,
  });
}

async function gradeForRun(
  deps: RunGraderDeps,
  job: BatchJob,
  account: BatchAccount,
  batch: Batch,
  hooks: BatchHooks,
): Promise<BatchAnswer> {
  const { clock } = deps.pool;
  const workers = watchWorkers(leaseFor(deps, job, account), {
    clock,
    findEnd: () => findEnd(deps, job),
    asksAlways: job.held !== null,
    onWork: account.lookAhead,
  });
  account.payFor(workers);
  let sincePreviousMs: number | null = null;
  const gradeBatch = createBatchGrader({
    workers,
    clock,
    newId: deps.newId,
    config: { maxWorkers: job.run.workers },
    whileWorkersLeave: async ({ retries }) => {
      sincePreviousMs = await account.settle(retries);
      // What has a key counts once its answer is recorded.
      if (job.held === null && !(await account.countResult())) sincePreviousMs = null;
    },
  });
  const onSample = (index: number, result: SampleResult) => {
    account.addResult(result);
    hooks.onSample?.(index, result);
  };
  const over = new AbortController();
  void keepRunAlive(deps.pool, job.run.runId, over.signal, deps.report);
  try {
    const { rewards, usage } = await gradeBatch(batch, { ...hooks, onSample });
    const workerSeconds = usage.workerSeconds + account.startMs() / 1_000;
    const workerSecondsSincePreviousBatch = sincePreviousMs === null ? null : sincePreviousMs / 1_000;
    const costUsd = deps.costUsd(workerSeconds);
    return { rewards, usage: { ...usage, workerSeconds, costUsd, workerSecondsSincePreviousBatch } };
  } catch (error) {
    // What it cost was spent; what it found was told to nobody, and whoever sends it again has it counted then.
    const isSpent = workers.heldMs() > 0 && !isOfFinishedRun(error);
    if (isSpent) await account.countCost(job.held?.lost.aborted ? job.held.lost.reason : error);
    throw error;
  } finally {
    over.abort();
  }
}

function isOfFinishedRun(error: unknown): boolean {
  return error instanceof Fault && error.code === "run_finished";
}

/**
 * Where a batch's workers come from. A worker is created for it only while somebody wants it; its own run counts for
 * sure then, also while the remembered target is older than the run.
 */
function leaseFor(deps: RunGraderDeps, job: BatchJob, account: BatchAccount) {
  const { run, batchId, held, readTarget } = job;
  return deps.leases.forBatch({
    runId: run.runId,
    batchId,
    ...(held === null ? {} : { attemptNumber: held.attemptNumber }),
    runWorkers: run.workers,
    onStart: account.addStart,
    targetWorkers: async () =>
      (await findEnd(deps, job)) === null ? Math.max(run.workers, await readTarget()) : 0,
  });
}

async function findEnd({ pool, report }: RunGraderDeps, job: BatchJob): Promise<Fault | null> {
  try {
    const end = await job.held?.findEnd();
    if (end) return end;
    const run = await getRunRow(pool, job.run.runId);
    if (run?.finishedAtMs === undefined) return null;
    job.entries.forget();
    if (run.runId !== defaultRunId || run.finishedAtMs >= job.beganAtMs) return runFinished(run.runId);
    await job.entries.enter(run.runId); // it was finished before this batch, which brings it back
    return null;
  } catch (fault) {
    report(fault); // a table that doesn't answer ends nothing
    return null;
  }
}
