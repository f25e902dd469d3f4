/** What a handler does for one batch. */
import { type BatchBeginning, beginBatch } from "../../functions/pool/batches/begin-batch.ts";
import type { HeldBatch } from "../../functions/pool/batches/held-batch.ts";
import { enterRun } from "../../functions/pool/runs/enter.ts";
import { keepRunAlive } from "../../functions/pool/runs/keep-alive.ts";
import { getRunRow } from "../../functions/pool/runs/read.ts";
import type { BatchAnswer, SampleResult } from "../../functions/rewards/batch.ts";
import { type BatchAccount, createBatchAccount } from "../../functions/rewards/batch-account.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { gradeUnderKey } from "../../functions/rewards/recorded-grading.ts";
import { watchWorkers } from "../../functions/rewards/watched-workers.ts";
import type { Container } from "./containers.ts";
import { faultOnly, leaseFor, servePart } from "./parts.ts";
import type { World } from "./world.ts";

export interface BatchPlan {
  readonly runId: string;
  /** The key under which it may be cancelled and sent again; none if it never will be. */
  readonly batchId: string | null;
  readonly workers: number;
  readonly waitMs: number;
  chunkMs(): number;
}

export interface BatchResult {
  readonly kind:
    | "served"
    | "not_served"
    | "run_not_found"
    | "run_finished"
    | Exclude<BatchBeginning["kind"], "begun">;
  /** How long the first lease was waited for. */
  readonly waitedMs: number;
  /** Of a batch with a key. */
  readonly answer?: string;
}

/** Claims its record, enters, leases, executes, gives back, records the answer and counts it. */
export async function serveBatch(world: World, container: Container, plan: BatchPlan): Promise<BatchResult> {
  try {
    return plan.batchId === null
      ? await serveEntered(world, container, plan, accountFor(world, container, plan, world.newId()), null)
      : await serveUnderKey(world, container, { ...plan, batchId: plan.batchId });
  } catch (error) {
    faultOnly(world, error);
    if (error instanceof Fault && error.code === "in_progress") world.watch.counts.attemptsOvertaken += 1;
    const isFinished = error instanceof Fault && error.code === "run_finished";
    return { kind: isFinished ? "run_finished" : "not_served", waitedMs: 0 };
  }
}

async function serveUnderKey(
  world: World,
  container: Container,
  plan: BatchPlan & { readonly batchId: string },
): Promise<BatchResult> {
  const { ctx } = container;
  const { batchId } = plan;
  const wasClockRight = container.process.isClockRight();
  const beginning = await beginBatch(ctx, { batchId, bodyHash: "" });
  if (beginning.kind !== "begun") return { waitedMs: 0, ...repeated(world, plan.runId, batchId, beginning) };
  const { claim } = beginning;
  world.noteBeginning(claim, wasClockRight && container.process.isClockRight());
  const account = accountFor(world, container, plan, `${batchId}#${claim.fence}`);
  const answer = `${claim.fence} ${world.newId()}`;
  let result: BatchResult = { kind: "not_served", waitedMs: 0 };
  const hooks = { signal: new AbortController().signal, encodeRecord: async () => Buffer.from(answer) };
  await gradeUnderKey(ctx, claim, hooks, {
    ...account,
    async grade(held) {
      result = await serveEntered(world, container, plan, account, held);
      return answerOf(result);
    },
    report: (error) => faultOnly(world, error),
  });
  if (result.kind !== "served") return result;
  if (!container.process.isClockRight()) world.noteForgettable(batchId);
  world.noteAnswer(batchId, answer);
  return { ...result, answer };
}

const noUsage = {} as BatchAnswer["usage"];

/** Only what was served is recorded. */
function answerOf({ kind }: BatchResult): BatchAnswer {
  if (kind === "run_finished" || kind === "run_not_found") throw new Fault("run_finished", kind);
  return { rewards: [kind === "served" ? 1 : null], usage: noUsage };
}

function repeated(
  world: World,
  runId: string,
  batchId: string,
  beginning: Exclude<BatchBeginning, { kind: "begun" }>,
) {
  if (beginning.kind !== "answered") return { kind: beginning.kind };
  const answer = Buffer.from(beginning.answer).toString();
  world.noteAnswer(batchId, answer);
  // A run that was finished before anybody found the answer takes nothing more.
  if (!world.isFinished(runId)) world.told.answered(batchId);
  world.watch.counts.answersRepeated += 1;
  return { kind: beginning.kind, answer };
}

/** The batch's account with its run; what it counts is compared with the run's totals in the end. */
function accountFor(
  world: World,
  { ctx, process }: Container,
  { runId, batchId }: BatchPlan,
  attemptId: string,
): BatchAccount {
  const deps = { pool: ctx, report: (error: unknown) => faultOnly(world, error) };
  const account = createBatchAccount(deps, { runId, attemptId, hasKey: batchId !== null });
  let isServed = false;
  return {
    ...account,
    addResult(result) {
      isServed = result.kind === "graded";
      account.addResult(result);
    },
    async settle(retries) {
      const told = await account.settle(retries);
      // Once it is recorded, whoever finds the answer counts it.
      if (batchId !== null && isServed) world.told.counting(runId, batchId, "passed");
      return told;
    },
    async countResult() {
      if (account.entry() === null) return account.countResult();
      const counting = world.told.counting(runId, batchId, isServed ? "passed" : "faults");
      // A sweep whose clock is ahead may take an entry that is being written for one of long ago.
      const isSure = world.wrongClocks.size === 0;
      const isCounted = await account.countResult();
      if (isCounted && isSure && world.wrongClocks.size === 0) counting.isCounted();
      if (isCounted && process.isAlive()) world.noteServed(runId, isServed);
      return isCounted;
    },
  };
}

const passed: SampleResult = {
  kind: "graded",
  reward: 1,
  passed: 1,
  cases: [{ verdict: { kind: "passed" } } as Extract<SampleResult, { kind: "graded" }>["cases"][number]],
};
const lost: SampleResult = {
  kind: "fault",
  reward: null,
  fault: { code: "worker_lost", detail: "", retryable: true },
};

async function serveEntered(
  world: World,
  container: Container,
  plan: BatchPlan,
  account: BatchAccount,
  held: HeldBatch | null,
): Promise<BatchResult> {
  const { ctx, process } = container;
  const over = new AbortController();
  try {
    const entry = await enterRun(ctx, plan.runId);
    if (entry.kind !== "entered") return { kind: entry.kind, waitedMs: 0 };
    const startedAtMs = world.time.nowMs();
    void keepRunAlive(ctx, plan.runId, over.signal, () => {});
    const workers = watchWorkers(leaseFor(world, container, plan, entry.run.workers), {
      clock: process.clock,
      findEnd: () => findEnd(container, plan, held),
      asksAlways: held !== null,
    });
    account.payFor(workers);
    const crew = Math.min(plan.workers, entry.run.workers);
    const signal = held?.lost ?? new AbortController().signal;
    const parts = Array.from({ length: crew }, () =>
      servePart(world, container, plan, workers, crew, signal),
    );
    const done = await Promise.all(parts);
    const waits = done.flatMap(({ leasedAtMs }) => (leasedAtMs === null ? [] : [leasedAtMs - startedAtMs]));
    const served = done.some(({ completed }) => completed);
    account.addResult(served ? passed : lost);
    await account.settle(0);
    if (held === null) await account.countResult();
    return { kind: served ? "served" : "not_served", waitedMs: Math.min(...waits) };
  } finally {
    over.abort();
  }
}

/** Whether the batch was cancelled or overtaken, or its run finished. */
async function findEnd({ ctx }: Container, plan: BatchPlan, held: HeldBatch | null): Promise<Fault | null> {
  try {
    const end = await held?.findEnd();
    if (end) return end;
    const run = await getRunRow(ctx, plan.runId);
    return run?.finishedAtMs === undefined ? null : new Fault("run_finished", "finished");
  } catch (error) {
    if (error instanceof Fault) return null; // a table that doesn't answer ends nothing
    throw error;
  }
}
