/**
 * Grading for a run: the run is alive while its batch is graded, and what the batch did is in its ledger before the
 * batch's answer is complete. Workers are leased in the batch's own name.
 */
import { setMaxListeners } from "node:events";
import type { BatchClaim, BatchKey } from "../pool/batches/batch-record.ts";
import { type BatchBeginning, beginBatch } from "../pool/batches/begin-batch.ts";
import { endBatch } from "../pool/batches/end-batch.ts";
import type { HeldBatch, HoldBatchContext } from "../pool/batches/held-batch.ts";
import type { LeaseSource } from "../pool/lease-source.ts";
import type { Entry } from "../pool/runs/enter.ts";
import { keepRunAlive } from "../pool/runs/keep-alive.ts";
import { getRunRow, type RunRefusal } from "../pool/runs/read.ts";
import { defaultRunId, type RunRow } from "../pool/runs/run-row.ts";
import { rememberRuns } from "../pool/runs/target.ts";
import type { SlotContext } from "../pool/slots/write.ts";
import type { Batch, BatchAnswer, BatchHooks, GradeBatch, SampleResult } from "./batch.ts";
import { type BatchAccount, createBatchAccount, runFinished } from "./batch-account.ts";
import { createBatchGrader } from "./batch-grader.ts";
import { Fault } from "./faults.ts";
import { joinSignals } from "./joined-signal.ts";
import { gradeUnderKey } from "./recorded-grading.ts";
import { type RunEntries, rememberDefaultRun } from "./run-entries.ts";
import { insistOnTable } from "./table-patience.ts";
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
  /** Grades until nobody waits any more, or everything stops. */
  gradeUntilStopped(
    grade: (hooks: BatchHooks) => Promise<BatchAnswer>,
    hooks: BatchHooks,
  ): Promise<BatchAnswer>;
}

async function admit(shared: Shared, origin: BatchOrigin, signal: AbortSignal): Promise<Admission> {
  const { deps, entries, readTarget } = shared;
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
    const job = { run: entry.run, beganAtMs, batchId, entries, readTarget };
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
  const { run, batchId, readTarget } = job;
  return deps.leases.forBatch({
    runId: run.runId,
    batchId,
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
