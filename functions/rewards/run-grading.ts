/**
 * Grading for a run: the run is alive while its batch is graded, and what the batch did is added to its totals before
 * the batch's answer is complete. Workers are leased in the batch's own name.
 */
import { setMaxListeners } from "node:events";
import type { VerdictKind } from "../grading/verdict.ts";
import type { BatchClaim } from "../pool/batches/batch-record.ts";
import type { HeldBatch, HoldBatchContext } from "../pool/batches/held-batch.ts";
import type { LeaseSource } from "../pool/lease-source.ts";
import { keepRunAlive } from "../pool/runs/keep-alive.ts";
import {
  type BatchNote,
  type BatchNoted,
  createBatchNotes,
  type NoteBatch,
} from "../pool/runs/note-batch.ts";
import { getRun } from "../pool/runs/read.ts";
import { defaultRunId, type RunRow } from "../pool/runs/run-row.ts";
import { rememberRuns } from "../pool/runs/target.ts";
import type { SlotContext } from "../pool/slots/write.ts";
import { type BatchOrigin, createAdmission, type Refused } from "./admission.ts";
import type { Batch, BatchAnswer, BatchHooks, GradeBatch, SampleResult } from "./batch.ts";
import { createBatchGrader } from "./batch-grader.ts";
import { Fault, whyStopped } from "./faults.ts";
import { joinSignals } from "./joined-signal.ts";
import { gradeUnderKey } from "./recorded-grading.ts";
import { type RunEntries, rememberDefaultRun } from "./run-entries.ts";
import { createUnderWay } from "./under-way.ts";
import { type WatchedWorkers, watchWorkers } from "./watched-workers.ts";

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
    noteBatch: createBatchNotes(pool),
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
  readonly noteBatch: NoteBatch;
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
  readonly noteBatch: NoteBatch;
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
  if (claim === null) return gradeForRun(deps, { ...job, held: null }, batch, hooks);
  return gradeUnderKey(deps.pool, claim, hooks, {
    grade: (held, signal) => gradeForRun(deps, { ...job, held }, batch, { ...hooks, signal }),
    report: deps.report,
  });
}

async function gradeForRun(
  deps: RunGraderDeps,
  job: BatchJob,
  batch: Batch,
  hooks: BatchHooks,
): Promise<BatchAnswer> {
  const { clock } = deps.pool;
  const maxWorkers = job.run.workers;
  const workers = watchWorkers(leaseFor(deps, job), {
    clock,
    findEnd: () => findEnd(deps, job),
    asksAlways: job.held !== null,
  });
  const counts = countResults();
  let sincePreviousMs: number | null = null;
  const gradeBatch = createBatchGrader({
    workers,
    clock,
    newId: deps.newId,
    config: { maxWorkers },
    whileWorkersLeave: async ({ retries }) => {
      sincePreviousMs = await note(deps, job, workers, { ...counts.read(), retries });
    },
  });
  const onSample = (index: number, result: SampleResult) => {
    counts.add(result);
    hooks.onSample?.(index, result);
  };
  const over = new AbortController();
  void keepRunAlive(deps.pool, job.run.runId, over.signal, deps.report);
  try {
    const answer = await gradeBatch(batch, { ...hooks, onSample });
    const workerSecondsSincePreviousBatch = sincePreviousMs === null ? null : sincePreviousMs / 1_000;
    const costUsd = deps.costUsd(answer.usage.workerSeconds);
    return { ...answer, usage: { ...answer.usage, costUsd, workerSecondsSincePreviousBatch } };
  } catch (error) {
    // What it cost was spent; what it found was told to nobody, and whoever sends it again has it counted then.
    const isSpent = workers.heldMs() > 0 && !isOfFinishedRun(error);
    const reason = job.held?.lost.aborted ? job.held.lost.reason : error;
    if (isSpent) await note(deps, job, workers, withoutAnswer(reason)).catch(deps.report);
    throw error;
  } finally {
    over.abort();
  }
}

/** A batch that another attempt has, or will have, is counted once, by that one. */
function withoutAnswer(reason: unknown): Counts {
  const isAnothers = reason instanceof Fault && (reason.code === "in_progress" || reason.code === "stopping");
  return { batches: isAnothers ? 0 : 1, samples: 0, verdicts: {}, faults: 0, retries: 0 };
}

function isOfFinishedRun(error: unknown): boolean {
  return error instanceof Fault && error.code === "run_finished";
}

/**
 * Where a batch's workers come from. A worker is created for it only while somebody wants it; its own run counts for
 * sure then, also while the remembered target is older than the run.
 */
function leaseFor(deps: RunGraderDeps, job: BatchJob) {
  const { run, batchId, held, readTarget } = job;
  return deps.leases.forBatch({
    runId: run.runId,
    batchId,
    ...(held === null ? {} : { attemptNumber: held.attemptNumber }),
    runWorkers: run.workers,
    targetWorkers: async () =>
      (await findEnd(deps, job)) === null ? Math.max(run.workers, await readTarget()) : 0,
  });
}

async function findEnd({ pool, report }: RunGraderDeps, job: BatchJob): Promise<Fault | null> {
  try {
    const end = await job.held?.findEnd();
    if (end) return end;
    const run = await getRun(pool, job.run.runId);
    if (run?.finishedAtMs === undefined) return null;
    job.entries.forget();
    if (run.runId !== defaultRunId || run.finishedAtMs >= job.beganAtMs) return runFinished(job);
    await job.entries.enter(run.runId); // it was finished before this batch, which brings it back
    return null;
  } catch (fault) {
    report(fault); // a table that doesn't answer ends nothing
    return null;
  }
}

function runFinished({ run }: BatchJob): Fault {
  const detail = `The run '${run.runId}' was finished before the batch was over. Nothing of the batch was counted.`;
  return new Fault("run_finished", detail, { retryable: false });
}

type Counts = Omit<BatchNote, "workersCreated" | "busyMs">;

/**
 * Adds the batch to its run; worker time since the run's batch before, or null when the table did not take it, for
 * whatever reason. A graded batch is graded: that its run's totals lack it is the smaller harm. Throws when the run was
 * finished.
 */
async function note(
  deps: RunGraderDeps,
  job: BatchJob,
  workers: WatchedWorkers,
  counts: Counts,
): Promise<number | null> {
  try {
    const cost = { workersCreated: workers.created(), busyMs: workers.heldMs() };
    const noted = await noteOrWake(job, { ...counts, ...cost });
    if (noted.kind === "noted") return noted.sincePreviousMs;
    if (noted.kind === "run_not_found") return null; // its record's time was over in the middle of the batch
  } catch (fault) {
    deps.report(fault);
    return null;
  }
  throw runFinished(job);
}

/** The default run may be finished, too, to be rid of its workers; its next batch brings it back. */
async function noteOrWake({ run, entries, noteBatch }: BatchJob, batchNote: BatchNote): Promise<BatchNoted> {
  const noted = await noteBatch(run.runId, batchNote);
  if (noted.kind !== "run_finished" || run.runId !== defaultRunId) return noted;
  entries.forget();
  await entries.enter(run.runId);
  return noteBatch(run.runId, batchNote);
}

function countResults() {
  const verdicts: Partial<Record<VerdictKind, number>> = {};
  let samples = 0;
  let faults = 0;
  return {
    read: () => ({ samples, verdicts, faults }),
    add(result: SampleResult) {
      samples += 1;
      if (result.kind === "fault") faults += 1;
      if (result.kind !== "graded") return;
      for (const { verdict } of result.cases) {
        if (verdict !== null) verdicts[verdict.kind] = (verdicts[verdict.kind] ?? 0) + 1;
      }
    },
  };
}
