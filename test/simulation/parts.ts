/** The parts of a batch: each leases a worker, runs chunks on it, and gives it back. */
import { Fault } from "../../functions/rewards/faults.ts";
import type { WorkerEvent, WorkerSource } from "../../functions/rewards/ports.ts";
import type { Container } from "./containers.ts";
import type { SimulatedChunk } from "./programs.ts";
import type { BatchPlan } from "./serving.ts";
import type { World } from "./world.ts";

/** The batch's source of workers; who holds what is told to the provider's truth. */
export function leaseFor(
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
          // Those with a wrong clock are ended in the middle of it, and may not have said so.
          const isSaid = process.isAlive() && process.isClockRight();
          if (condition === "broken" && isSaid) world.noteBroken(slot, token, workerId);
          return lease.release(condition);
        },
      };
    },
  };
}

export async function servePart(
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
