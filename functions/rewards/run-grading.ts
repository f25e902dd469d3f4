/**
 * Grading for a run: the run is alive while its batch is graded, and what the batch did is added to its totals before
 * the batch's answer is complete. Workers are leased in the batch's own name.
 */
import { setMaxListeners } from "node:events";
import type { VerdictKind } from "../grading/verdict.ts";
import type { BatchClaim, BatchKey } from "../pool/batches/batch-record.ts";
import { type BatchBeginning, beginBatch } from "../pool/batches/begin-batch.ts";
import { endBatch } from "../pool/batches/end-batch.ts";
import type { HeldBatch, HoldBatchContext } from "../pool/batches/held-batch.ts";
import type { LeaseSource } from "../pool/lease-source.ts";
import type { Entry } from "../pool/runs/enter.ts";
import { keepRunAlive } from "../pool/runs/keep-alive.ts";
import {
  type BatchNote,
  type BatchNoted,
  createBatchNotes,
  type NoteBatch,
} from "../pool/runs/note-batch.ts";
import { getRun, type RunRefusal } from "../pool/runs/read.ts";
import { defaultRunId, type RunRow } from "../pool/runs/run-row.ts";
import { rememberRuns } from "../pool/runs/target.ts";
import type { SlotContext } from "../pool/slots/write.ts";
import type { Batch, BatchAnswer, BatchHooks, GradeBatch, SampleResult } from "./batch.ts";
import { createBatchGrader } from "./batch-grader.ts";
import { Fault } from "./faults.ts";
import { joinSignals } from "./joined-signal.ts";
import { gradeUnderKey } from "./recorded-grading.ts";
import { type RunEntries, rememberDefaultRun } from "./run-entries.ts";
import { insistOnTable } from "./table-patience.ts";
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

/** For whom a batch is graded. */
export interface BatchOrigin {
  readonly runId: string;
  /** The batch's name and body, if its client gave it a key: then it can be cancelled by others, and sent again. */
  readonly key: BatchKey | null;
  /** How long the batch may take; what its admission took is not given to its grading again. Default: no waiting. */
  readonly deadlineMs?: number;
  /** Aborted when nobody waits for its answer any more. */
  readonly signal?: AbortSignal;
}

/** `gradeBatch` is for this batch alone, and must be called. */
export type Admission =
  | { readonly kind: "admitted"; readonly gradeBatch: GradeBatch }
  | Exclude<BatchBeginning, { readonly kind: "begun" }>
  | RunRefusal;

export interface RunGrader {
  /** Lets a batch of the run begin; the grader that it gets is for that batch alone. Throws the table's faults. */
  admitBatch(origin: BatchOrigin): Promise<Admission>;
  /** Cancels all batches, also those still to come; resolves once nothing of them runs and their workers are back. */
  stop(): Promise<void>;
}

/** One per container. The graders throw what `GradeBatch` throws. */
export function createRunGrader(deps: RunGraderDeps): RunGrader {
  const { pool } = deps;
  const stopping = new AbortController();
  // Every batch listens to it, and there may be more than Node's default takes for a leak.
  setMaxListeners(0, stopping.signal);
  const underWay = new Set<Promise<unknown>>();
  const shared: Shared = {
    deps,
    entries: rememberDefaultRun(pool),
    readTarget: rememberRuns(pool, pool.settings.slots).targetWorkers,
    noteBatch: createBatchNotes(pool),
    async gradeUntilStopped(grade, hooks) {
      const { signal, leave } = joinSignals(hooks.signal, stopping.signal);
      const grading = grade({ ...hooks, signal });
      const settled = grading.catch(() => {}).finally(() => underWay.delete(settled));
      underWay.add(settled);
      return grading.finally(leave);
    },
  };
  return {
    async admitBatch(origin) {
      const { signal, leave } = joinSignals(origin.signal, stopping.signal);
      return admit(shared, origin, signal).finally(leave);
    },
    async stop() {
      stopping.abort();
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
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

async function admit(shared: Shared, origin: BatchOrigin, signal: AbortSignal): Promise<Admission> {
  const { deps, entries, readTarget, noteBatch } = shared;
  const { pool } = deps;
  const { runId, key, deadlineMs = 0 } = origin;
  const askedAtMs = pool.clock.nowMs();
  const waiting = { deadlineAtMs: askedAtMs + deadlineMs, signal };
  const insist = <Value>(work: () => Promise<Value>) =>
    insistOnTable({ ...pool, report: deps.report }, waiting, work);
  const beginning = key === null ? null : await beginInsisting(pool, key, insist);
  if (beginning !== null && beginning.kind !== "begun") return beginning;
  const claim = beginning?.claim ?? null;
  const entry = await enterClaimed(deps, () => insist(() => entries.enter(runId)), claim);
  if (entry.kind !== "entered") return entry;
  const gradeBatch: GradeBatch = (wanted, hooks) => {
    const beganAtMs = pool.clock.nowMs();
    const batch = shortenBy(wanted, beganAtMs - askedAtMs);
    const batchId = claim?.batchId ?? deps.newId();
    const job = { run: entry.run, beganAtMs, batchId, entries, readTarget, noteBatch };
    return shared.gradeUntilStopped((joined) => gradeAdmitted(deps, job, claim, batch, joined), hooks);
  };
  return { kind: "admitted", gradeBatch };
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

function beginInsisting(
  pool: HoldBatchContext,
  key: BatchKey,
  insist: (begin: () => Promise<BatchBeginning>) => Promise<BatchBeginning>,
): Promise<BatchBeginning> {
  const attempt = pool.newId();
  return insist(() => beginBatch(pool, key, attempt));
}

function shortenBy(batch: Batch, tookMs: number): Batch {
  return tookMs > 0 ? { ...batch, deadlineMs: Math.max(1, batch.deadlineMs - tookMs) } : batch;
}

/** Enters the run. A batch that has claimed its record and can't be graded is over. */
async function enterClaimed(
  { pool, report }: RunGraderDeps,
  enter: () => Promise<Entry>,
  claim: BatchClaim | null,
): Promise<Entry> {
  let isEntered = false;
  try {
    const entry = await enter();
    isEntered = entry.kind === "entered";
    return entry;
  } finally {
    if (!isEntered && claim !== null) await endBatch(pool, claim).catch(report);
  }
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

/** A batch that another attempt has is counted once, by that one. */
function withoutAnswer(reason: unknown): Counts {
  const isAnothers = reason instanceof Fault && reason.code === "in_progress";
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
  const { run, batchId, readTarget } = job;
  return deps.leases.forBatch({
    runId: run.runId,
    batchId,
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
