/** Handler containers: each serves one request at a time, and lives until it crashes. */
import { type BatchBeginning, beginBatch } from "../../functions/pool/batches/begin-batch.ts";
import { type HeldBatch, holdBatch } from "../../functions/pool/batches/held-batch.ts";
import { createLeaseSource, type LeaseSource } from "../../functions/pool/lease-source.ts";
import { enterRun } from "../../functions/pool/runs/enter.ts";
import { keepRunAlive } from "../../functions/pool/runs/keep-alive.ts";
import { type BatchNoted, createBatchNotes, type NoteBatch } from "../../functions/pool/runs/note-batch.ts";
import { getRun } from "../../functions/pool/runs/read.ts";
import { type RunsView, rememberRuns } from "../../functions/pool/runs/target.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { WorkerEvent, WorkerSource } from "../../functions/rewards/ports.ts";
import { watchWorkers } from "../../functions/rewards/watched-workers.ts";
import type { SimulatedProcess } from "./process.ts";
import type { SimulatedChunk } from "./programs.ts";
import type { World } from "./world.ts";

export interface Container {
  readonly process: SimulatedProcess;
  readonly ctx: SweepContext;
  readonly source: LeaseSource;
  readonly noteBatch: NoteBatch;
  readonly runs: RunsView;
}

export function startContainer(world: World, name: string): Container {
  const process = world.startProcess(name, world.weather().handlers);
  world.handlers.add(process);
  process.onCrash(() => world.handlers.delete(process));
  const ctx = world.contextOf(process);
  return {
    process,
    ctx,
    source: createLeaseSource(ctx, (event) => {
      if (event.kind === "leased" && event.how === "taken_over") world.watch.counts.takenOver += 1;
    }),
    noteBatch: createBatchNotes(ctx),
    runs: rememberRuns(ctx, ctx.settings.slots),
  };
}

export interface Containers<C> {
  /** Serves a request in some container; `crashed` when that one died over it. */
  serve<T>(request: (container: C) => Promise<T>): Promise<T | "crashed">;
}

/** Containers that wait for requests; a new one is started when none does. */
export function createContainers<C extends { readonly process: SimulatedProcess }>(
  world: World,
  start: (number: number) => C,
): Containers<C> {
  const idle: C[] = [];
  let started = 0;
  return {
    async serve(request) {
      // Some time later a container that froze after its answer may still stand still: the request waits with it.
      dropOld(world, idle);
      const at = Math.floor(world.random() * idle.length);
      const [found] = idle.splice(at, 1);
      const container = found?.process.isAlive() ? found : start(++started);
      const answer = request(container);
      // A crash is the end of the request, not an error of it.
      answer.catch(() => {});
      const first = await Promise.race([answer, container.process.crashed.then(() => "crashed" as const)]);
      if (container.process.isAlive()) idle.push(container);
      return first;
    },
  };
}

/** After a deploy requests go to new containers, some of them not at once. */
function dropOld<C extends { readonly process: SimulatedProcess }>(world: World, idle: C[]): void {
  const version = world.version();
  const kept = idle.filter(({ process }) => process.supervisorVersion === version || world.random() < 0.5);
  if (kept.length < idle.length) idle.splice(0, idle.length, ...kept);
}

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

/** What a handler does for one batch: claim its record, enter, lease, execute, give back, note, record the answer. */
export async function serveBatch(world: World, container: Container, plan: BatchPlan): Promise<BatchResult> {
  const { ctx } = container;
  let held: HeldBatch | null = null;
  try {
    if (plan.batchId !== null) {
      const beginning = await beginBatch(ctx, { batchId: plan.batchId, bodyHash: "" });
      if (beginning.kind !== "begun") return { waitedMs: 0, ...repeated(world, plan.batchId, beginning) };
      world.noteBeginning(beginning.claim, container.process);
      held = holdBatch(ctx, beginning.claim, (error) => faultOnly(world, error));
    }
    const result = await serveHeld(world, container, plan, held);
    if (held === null || result.kind !== "served") return result;
    const answer = `${held.fence} ${world.newId()}`;
    await held.answer(Buffer.from(answer));
    world.noteAnswer(held.batchId, answer);
    return { ...result, answer };
  } catch (error) {
    faultOnly(world, error);
    if (held?.lost.aborted || isOvertaken(error)) world.watch.counts.attemptsOvertaken += 1;
    return { kind: "not_served", waitedMs: 0 };
  } finally {
    await held?.end().catch((error: unknown) => faultOnly(world, error));
  }
}

function repeated(world: World, batchId: string, beginning: Exclude<BatchBeginning, { kind: "begun" }>) {
  if (beginning.kind !== "answered") return { kind: beginning.kind };
  const answer = Buffer.from(beginning.answer).toString();
  world.noteAnswer(batchId, answer);
  world.watch.counts.answersRepeated += 1;
  return { kind: beginning.kind, answer };
}

function isOvertaken(error: unknown): boolean {
  return error instanceof Fault && error.code === "in_progress";
}

async function serveHeld(
  world: World,
  container: Container,
  plan: BatchPlan,
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
    const crew = Math.min(plan.workers, entry.run.workers);
    const signal = held?.lost ?? new AbortController().signal;
    const parts = Array.from({ length: crew }, () =>
      servePart(world, container, plan, workers, crew, signal),
    );
    const done = await Promise.all(parts);
    const waits = done.flatMap(({ leasedAtMs }) => (leasedAtMs === null ? [] : [leasedAtMs - startedAtMs]));
    const served = done.some(({ completed }) => completed);
    const note = { workersCreated: workers.created(), busyMs: workers.heldMs() };
    const noted = await countResult(world, container, plan, { served, ...note });
    if (noted !== null && noted.kind !== "noted") return { kind: noted.kind, waitedMs: 0 };
    return { kind: served ? "served" : "not_served", waitedMs: Math.min(...waits) };
  } finally {
    over.abort();
  }
}

/** A graded batch is graded, also when the table does not count it. */
async function countResult(
  world: World,
  { noteBatch, process }: Container,
  { runId, batchId }: BatchPlan,
  { served, ...cost }: { readonly served: boolean; readonly workersCreated: number; readonly busyMs: number },
): Promise<BatchNoted | null> {
  const counting = world.told.counting(runId, batchId, served ? "passed" : "faults");
  try {
    const noted = await noteBatch(runId, {
      samples: 1,
      verdicts: { passed: served ? 1 : 0 },
      faults: served ? 0 : 1,
      retries: 0,
      ...cost,
    });
    if (noted.kind === "noted") counting.isCounted();
    else counting.isNotCounted();
    if (noted.kind === "noted" && process.isAlive()) world.noteServed(runId, served);
    return noted;
  } catch (error) {
    faultOnly(world, error);
    return null;
  }
}

/** Whether the batch was cancelled or overtaken, or its run finished. */
async function findEnd({ ctx }: Container, plan: BatchPlan, held: HeldBatch | null): Promise<Fault | null> {
  try {
    const end = await held?.findEnd();
    if (end) return end;
    const run = await getRun(ctx, plan.runId);
    return run?.finishedAtMs === undefined ? null : new Fault("run_finished", "finished");
  } catch (error) {
    if (error instanceof Fault) return null; // a table that doesn't answer ends nothing
    throw error;
  }
}

/** The batch's source of workers; who holds what is told to the provider's truth. */
function leaseFor(
  world: World,
  { source, process, runs }: Container,
  plan: BatchPlan,
  runWorkers: number,
): WorkerSource {
  const { watch, cloud } = world;
  const batchId = plan.batchId ?? world.newId();
  const batch = source.forBatch({
    runId: plan.runId,
    batchId,
    runWorkers,
    targetWorkers: runs.targetWorkers,
  });
  return {
    isWantedElsewhere: batch.isWantedElsewhere,
    async acquire(options) {
      const lease = await batch.acquire(options);
      if (lease === null) return null;
      const { slot, fencingToken: token, workerId } = lease;
      watch.counts.leases += 1;
      watch.note(process.name, `holds slot ${slot} (${workerId}) with fence ${token}`);
      world.noteLease(slot, token, workerId);
      const isWanted = () => !world.isFinished(plan.runId) && !world.cancelled.has(batchId);
      const letGo = cloud.hold(workerId, { token, process, isWanted });
      return {
        ...lease,
        release(condition) {
          letGo();
          if (condition === "broken") world.noteBroken(slot, token, workerId);
          return lease.release(condition);
        },
      };
    },
  };
}

async function servePart(
  world: World,
  { process }: Container,
  plan: BatchPlan,
  workers: WorkerSource,
  crew: number,
  signal: AbortSignal,
) {
  const { watch, time, random } = world;
  const deadlineAtMs = process.clock.nowMs() + plan.waitMs;
  const lease = await workers.acquire({ deadlineAtMs, signal }).catch((error: unknown) => {
    faultOnly(world, error);
    const isTables = error instanceof Fault && error.code === "store_unavailable";
    if (isTables && process.clock.nowMs() < deadlineAtMs - 1_000 && process.isClockRight())
      watch.violation("a batch gave up before its time", error.message);
    return null;
  });
  if (lease === null) return { leasedAtMs: null, completed: false };
  const leasedAtMs = time.nowMs();
  const ends: string[] = [];
  const chunks = random() < 0.15 ? 2 : 1;
  for (let sent = 0; sent < chunks; sent += 1) {
    if (sent > 0 && crew > 1 && (await workers.isWantedElsewhere?.())) break;
    const runMs = Math.round(plan.chunkMs());
    const chunk: SimulatedChunk = { chunkId: plan.batchId ?? "", deadlineMs: runMs, runMs, programs: [] };
    const events = lease.execute(chunk, signal);
    ends.push(await lastOf(world, events));
    if (ends.at(-1) !== "completed") break;
  }
  const completed = ends.every((end) => end === "completed");
  if (!completed) watch.counts.chunksLost += 1;
  await lease.release(completed ? "healthy" : "broken");
  return { leasedAtMs, completed };
}

async function lastOf(world: World, events: AsyncIterable<WorkerEvent>): Promise<string> {
  let last = "cut";
  try {
    for await (const event of events) if (event.kind === "summary") last = event.end;
  } catch (error) {
    faultOnly(world, error);
    return "fault";
  }
  return last;
}

/** The product's faults are expected here; anything else is a bug. */
export function faultOnly(world: Pick<World, "watch">, error: unknown): void {
  if (!(error instanceof Fault)) world.watch.violation("a bug", String((error as Error)?.stack ?? error));
}
