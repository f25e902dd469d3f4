/** Handler containers: each serves one request at a time, and lives until it crashes. */
import { createLeaseSource, type LeaseSource } from "../../functions/pool/lease-source.ts";
import { enterRun } from "../../functions/pool/runs/enter.ts";
import { keepRunAlive } from "../../functions/pool/runs/keep-alive.ts";
import { createBatchNotes, type NoteBatch } from "../../functions/pool/runs/note-batch.ts";
import { type RunsView, rememberRuns } from "../../functions/pool/runs/target.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { WorkerEvent } from "../../functions/rewards/ports.ts";
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
  try {
    const entry = await enterRun(ctx, plan.runId);
    if (entry.kind !== "entered") return { kind: entry.kind, waitedMs: 0 };
    const startedAtMs = world.time.nowMs();
    void keepRunAlive(ctx, plan.runId, over.signal, () => {});
    const parts = Array.from({ length: Math.min(plan.workers, entry.run.workers) }, () =>
      servePart(world, container, plan, entry.run.workers),
    );
    const done = await Promise.all(parts);
    const waits = done.flatMap(({ leasedAtMs }) => (leasedAtMs === null ? [] : [leasedAtMs - startedAtMs]));
    const served = done.some(({ completed }) => completed);
    const noted = await noteBatch(plan.runId, {
      samples: 1,
      verdicts: { passed: served ? 1 : 0 },
      faults: served ? 0 : 1,
      retries: 0,
      workersCreated: done.filter(({ created }) => created).length,
      busyMs: done.reduce((sum, { busyMs }) => sum + busyMs, 0),
    });
    if (noted.kind === "noted" && process.isAlive()) world.noteServed(plan.runId, served);
    return { kind: served ? "served" : "not_served", waitedMs: Math.min(...waits) };
  } catch (error) {
    faultOnly(world, error);
    return { kind: "not_served", waitedMs: 0 };
  } finally {
    over.abort();
  }
}

async function servePart(world: World, container: Container, plan: BatchPlan, runWorkers: number) {
  const { source, process, runs } = container;
  const { watch, time, random } = world;
  const batch = source.forBatch({
    runId: plan.runId,
    batchId: world.newId(),
    runWorkers,
    targetWorkers: runs.targetWorkers,
    isOver: () => runs.isFinished(plan.runId),
  });
  const deadlineAtMs = process.clock.nowMs() + plan.waitMs;
  const lease = await batch.acquire({ deadlineAtMs, signal: new AbortController().signal }).catch((error) => {
    faultOnly(world, error);
    return null;
  });
  if (lease === null) return { leasedAtMs: null, completed: false, created: false, busyMs: 0 };
  const leasedAtMs = time.nowMs();
  watch.counts.leases += 1;
  watch.note(process.name, `holds slot ${lease.slot} (${lease.workerId}) with fence ${lease.fencingToken}`);
  world.noteLease(lease.slot, lease.fencingToken);
  const letGo = world.cloud.hold(lease.workerId, {
    token: lease.fencingToken,
    process,
    isWanted: () => !world.isFinished(plan.runId),
  });
  const ends: string[] = [];
  const chunks = random() < 0.15 ? 2 : 1;
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    const deadlineMs = Math.round(plan.chunkMs());
    const events = lease.execute({ chunkId: "c", deadlineMs, programs: [] }, new AbortController().signal);
    ends.push(await lastOf(world, events));
    if (ends.at(-1) !== "completed") break;
  }
  const completed = ends.every((end) => end === "completed");
  if (!completed) watch.counts.chunksLost += 1;
  letGo();
  await lease.release(completed ? "healthy" : "broken");
  return { leasedAtMs, completed, created: lease.created, busyMs: time.nowMs() - leasedAtMs };
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
