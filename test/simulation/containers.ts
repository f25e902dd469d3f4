/** Handler containers: each serves one request at a time, and lives until it crashes. */
import { beginBatch, endBatch, isCancelled } from "../../functions/pool/batches/batch-record.ts";
import { createLeaseSource, type LeaseSource } from "../../functions/pool/lease-source.ts";
import { enterRun } from "../../functions/pool/runs/enter.ts";
import { keepRunAlive } from "../../functions/pool/runs/keep-alive.ts";
import { createBatchNotes, type NoteBatch } from "../../functions/pool/runs/note-batch.ts";
import { getRun } from "../../functions/pool/runs/read.ts";
import { type RunsView, rememberRuns } from "../../functions/pool/runs/target.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { WorkerEvent, WorkerSource } from "../../functions/rewards/ports.ts";
import { watchWorkers } from "../../functions/rewards/watched-workers.ts";
import type { SimulatedProcess } from "./process.ts";
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

/** Containers that wait for requests; a new one is started when none does. */
export function createContainers(world: World, names: string) {
  const idle: Container[] = [];
  let started = 0;
  return {
    /** Serves a request in some container; `crashed` when that one died over it. */
    async serve<T>(request: (container: Container) => Promise<T>): Promise<T | "crashed"> {
      // Some time later a container that froze after its answer may still stand still: the request waits with it.
      const at = Math.floor(world.random() * idle.length);
      const [found] = idle.splice(at, 1);
      const container = found?.process.isAlive() ? found : startContainer(world, `${names}${++started}`);
      const answer = request(container);
      // A crash is the end of the request, not an error of it.
      answer.catch(() => {});
      const first = await Promise.race([answer, container.process.crashed.then(() => "crashed" as const)]);
      if (container.process.isAlive()) idle.push(container);
      return first;
    },
  };
}

export interface BatchPlan {
  readonly runId: string;
  /** The key under which it may be cancelled; none if it never will be. */
  readonly batchId: string | null;
  readonly workers: number;
  readonly waitMs: number;
  chunkMs(): number;
}

export interface BatchResult {
  readonly kind: "served" | "not_served" | "run_not_found" | "run_finished";
  /** How long the first lease was waited for. */
  readonly waitedMs: number;
}

/** What a handler does for one batch: enter, lease, execute, give back, note. */
export async function serveBatch(world: World, container: Container, plan: BatchPlan): Promise<BatchResult> {
  const { ctx, process, noteBatch } = container;
  const over = new AbortController();
  const attempt = world.newId();
  try {
    const entry = await enterRun(ctx, plan.runId);
    if (entry.kind !== "entered") return { kind: entry.kind, waitedMs: 0 };
    if (plan.batchId !== null) await beginBatch(ctx, plan.batchId, attempt);
    const startedAtMs = world.time.nowMs();
    void keepRunAlive(ctx, plan.runId, over.signal, () => {});
    const workers = watchWorkers(leaseFor(world, container, plan, attempt, entry.run.workers), {
      clock: process.clock,
      findEnd: () => findEnd(container, plan, attempt),
      asksAlways: plan.batchId !== null,
    });
    const crew = Math.min(plan.workers, entry.run.workers);
    const parts = Array.from({ length: crew }, () => servePart(world, container, plan, workers, crew));
    const done = await Promise.all(parts);
    const waits = done.flatMap(({ leasedAtMs }) => (leasedAtMs === null ? [] : [leasedAtMs - startedAtMs]));
    const served = done.some(({ completed }) => completed);
    const noted = await noteBatch(plan.runId, {
      samples: 1,
      verdicts: { passed: served ? 1 : 0 },
      faults: served ? 0 : 1,
      retries: 0,
      workersCreated: workers.created(),
      busyMs: workers.heldMs(),
    });
    if (noted.kind === "noted" && process.isAlive()) world.noteServed(plan.runId, served);
    return { kind: served ? "served" : "not_served", waitedMs: Math.min(...waits) };
  } catch (error) {
    faultOnly(world, error);
    return { kind: "not_served", waitedMs: 0 };
  } finally {
    over.abort();
    if (plan.batchId !== null)
      await endBatch(ctx, plan.batchId, attempt).catch((error: unknown) => faultOnly(world, error));
  }
}

/** Whether the batch was cancelled, or its run finished. */
async function findEnd({ ctx }: Container, plan: BatchPlan, attempt: string): Promise<Fault | null> {
  try {
    if (plan.batchId !== null && (await isCancelled(ctx, plan.batchId, attempt)))
      return new Fault("cancelled", "cancelled");
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
  attempt: string,
  runWorkers: number,
): WorkerSource {
  const { watch, cloud } = world;
  const batchId = plan.batchId ?? attempt;
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
      world.noteLease(slot, token);
      const isWanted = () => !world.isFinished(plan.runId) && !world.cancelled.has(batchId);
      const letGo = cloud.hold(workerId, { token, process, isWanted });
      return {
        ...lease,
        release(condition) {
          letGo();
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
) {
  const { watch, time, random } = world;
  const deadlineAtMs = process.clock.nowMs() + plan.waitMs;
  const { signal } = new AbortController();
  const lease = await workers.acquire({ deadlineAtMs, signal }).catch((error: unknown) => {
    faultOnly(world, error);
    return null;
  });
  if (lease === null) return { leasedAtMs: null, completed: false };
  const leasedAtMs = time.nowMs();
  const ends: string[] = [];
  const chunks = random() < 0.15 ? 2 : 1;
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    if (chunk > 0 && crew > 1 && (await workers.isWantedElsewhere?.())) break;
    const deadlineMs = Math.round(plan.chunkMs());
    const events = lease.execute({ chunkId: plan.batchId ?? "", deadlineMs, programs: [] }, signal);
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
