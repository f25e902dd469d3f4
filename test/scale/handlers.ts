/** Handlers as Lambda runs them: a container serves one batch at a time, with one CPU for all that it reads. */
import { createLeaseSource } from "../../functions/pool/lease-source.ts";
import type { WorkerFactory } from "../../functions/pool/ports.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import type { Batch, BatchAnswer } from "../../functions/rewards/batch.ts";
import { createRunGrader, type RunGrader } from "../../functions/rewards/run-grading.ts";
import type { SimulatedProcess } from "../simulation/process.ts";
import type { SimulatedTime } from "../simulation/simulated-time.ts";
import type { World } from "../simulation/world.ts";
import { answerBytesPerSample, handlerCpuMs } from "./assumptions.ts";
import { countRequests, type RequestCounts } from "./counted.ts";

export interface Handler {
  readonly process: SimulatedProcess;
  readonly ctx: SweepContext;
  /** Grades a batch of a run as the endpoint does, under a key of its own. */
  grade(runId: string, batch: Batch): Promise<BatchAnswer>;
}

/** Behind by no more than this, lines are as good as read. */
const unnoticedMs = 2;

export function startHandler(
  world: World,
  name: string,
  counts: RequestCounts,
  noteLease: () => void,
): Handler {
  const process = world.startProcess(name, world.weather().handlers);
  const counted = countRequests(world.contextOf(process), counts);
  const work = createCpu(world.time);
  const ctx = { ...counted, workers: readingWith(work, counted.workers) };
  const report = (fault: unknown) => world.watch.violation("a fault in the calm", String(fault));
  const leases = createLeaseSource(ctx, (event) => {
    if (event.kind === "fault") report(event.fault);
    if (event.kind === "leased") noteLease();
  });
  const grader = createRunGrader({ leases, pool: ctx, newId: world.newId, costUsd: () => 0, report });
  return { process, ctx, grade: (runId, batch) => gradeKeyed(world, grader, work, runId, batch) };
}

async function gradeKeyed(
  world: World,
  grader: RunGrader,
  work: Cpu,
  runId: string,
  batch: Batch,
): Promise<BatchAnswer> {
  await work(batch.samples.length * handlerCpuMs.perSample);
  const key = { batchId: world.newId(), bodyHash: "" };
  const admission = await grader.admitBatch({ runId, key, admitWithinMs: batch.deadlineMs });
  if (admission.kind !== "admitted") throw new Error(`the batch was not admitted: ${admission.kind}`);
  return admission.gradeBatch(batch, {
    signal: new AbortController().signal,
    encodeRecord: async () => new Uint8Array(batch.samples.length * answerBytesPerSample),
  });
}

/** Resolves when the CPU has done so much work, after all it was given before. */
type Cpu = (ms: number) => Promise<void> | undefined;

function createCpu(time: SimulatedTime): Cpu {
  let doneAtMs = 0;
  return (ms) => {
    const nowMs = time.nowMs();
    doneAtMs = Math.max(nowMs, doneAtMs) + ms;
    return doneAtMs - nowMs > unnoticedMs ? time.sleep(doneAtMs - nowMs) : undefined;
  };
}

function readingWith(work: Cpu, workers: WorkerFactory): WorkerFactory {
  return {
    create: workers.create,
    attach: (worker) => {
      const executor = workers.attach(worker);
      return {
        async *execute(chunk, fencingToken, signal) {
          for await (const event of executor.execute(chunk, fencingToken, signal)) {
            const done = work(handlerCpuMs.perLine);
            if (done !== undefined) await done;
            yield event;
          }
        },
      };
    },
  };
}
