/** Trainers: each registers a run, sends batches and signs of life, and finishes it, or vanishes. Then the next. */
import { cancelBatch } from "../../functions/pool/batches/cancel-batch.ts";
import { beatRun } from "../../functions/pool/runs/heartbeat.ts";
import { finishRun } from "../../functions/pool/sweep/finish-run.ts";
import { startRun } from "../../functions/pool/sweep/start-run.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import {
  type Container,
  type Containers as ContainersOf,
  createContainers,
  startContainer,
} from "./containers.ts";
import { type BatchPlan, type BatchResult, serveBatch } from "./serving.ts";
import type { World } from "./world.ts";

export interface TrainerLoad {
  /** Workers that a run asks for. */
  readonly workers: number;
  /** Batches under way at once. */
  readonly concurrency: number;
  readonly thinkMs: number;
  readonly chunkMs: number;
  /** How long a run goes on, about. */
  readonly runMs: number;
  readonly heartbeats: boolean;
}

/** As long as a batch may take. */
const longestDeadlineMs = 840_000;
/** As while a model is evaluated. */
const longestPauseMs = 900_000;
/** How long a batch waits for a worker. */
const patienceMs = 60_000;

type Containers = ContainersOf<Container>;

/** Lives until the load is over. */
export async function trainer(world: World, name: string, load: TrainerLoad): Promise<void> {
  const containers = createContainers(world, (number) => startContainer(world, `${name}.c${number}`));
  await world.time.sleep(world.random() * 30_000);
  for (let run = 1; world.isLoaded(); run += 1) {
    await trainOnce(world, containers, `${name}.r${run}`, load);
    const isLong = world.random() < 0.25;
    await world.time.sleep(world.random() * (isLong ? 900_000 : 120_000));
  }
}

async function trainOnce(world: World, containers: Containers, runId: string, load: TrainerLoad) {
  const { time, random, watch } = world;
  const untilMs = time.nowMs() + load.runMs * (0.5 + random());
  const isOver = () => !world.isLoaded() || time.nowMs() >= untilMs;
  await insist(world, containers, ({ ctx }) =>
    startRun(ctx, runId, { name: runId, workers: load.workers, metadata: {} }),
  );
  const beats = load.heartbeats ? heartbeat(world, containers, runId, isOver) : Promise.resolve();
  const batches = Array.from({ length: load.concurrency }, () =>
    sendBatches(world, containers, runId, load, isOver),
  );
  await Promise.all(batches);
  if (random() < world.weather().vanish) {
    watch.counts.runsVanished += 1;
    watch.note(runId, "vanishes");
    return;
  }
  await insist(world, containers, ({ ctx }) => finishRun(ctx, runId));
  await beats;
  watch.counts.runsFinished += 1;
}

/** Repeats a request until it is answered. */
async function insist(
  { time, random }: World,
  containers: Containers,
  request: (container: Container) => Promise<unknown>,
): Promise<void> {
  for (;;) {
    const answer = await containers.serve(async (container) => {
      try {
        await request(container);
        return "answered";
      } catch (error) {
        if (error instanceof Fault) return "refused";
        throw error;
      }
    });
    if (answer === "answered") return;
    await time.sleep(200 + random() * 2_000);
  }
}

/** Cancels a batch; whoever is told that it is cancelled may rely on it. */
async function cancel(world: World, containers: Containers, batchId: string): Promise<void> {
  world.cancelled.add(batchId);
  await insist(world, containers, async ({ ctx, process }) => {
    const stopper = process.stopper(world.cloud.stopper);
    const { kind } = await cancelBatch({ ...ctx, stopper }, batchId);
    if (kind !== "cancelled") return;
    world.watch.counts.batchesCancelled += 1;
    if (world.cloud.runs(batchId)) world.watch.violation("programs of a cancelled batch run", batchId);
  });
}

async function heartbeat(world: World, containers: Containers, runId: string, isOver: () => boolean) {
  while (!isOver()) {
    await containers.serve(async ({ ctx }) => {
      await beatRun(ctx, runId).catch((error: unknown) => {
        if (!(error instanceof Fault)) throw error;
      });
    });
    await world.time.sleep(60_000);
  }
}

async function sendBatches(
  world: World,
  containers: Containers,
  runId: string,
  load: TrainerLoad,
  isOver: () => boolean,
): Promise<void> {
  const { time, random } = world;
  const chunkMs = () => drawChunkMs(world, load);
  while (!isOver()) {
    const workers = random() < 0.6 ? 1 : 1 + Math.floor(random() * load.workers);
    const { cancel: cancelled, repeat } = world.weather();
    const luck = random();
    const batchId = luck < cancelled + repeat ? world.newId() : null;
    const plan = { runId, batchId, workers, waitMs: patienceMs, chunkMs };
    if (batchId !== null && luck < cancelled)
      time.after(random() * 4_000, () => void cancel(world, containers, batchId));
    else if (batchId !== null) {
      await Promise.all([1, 2].map(() => sendUntilAnswered(world, containers, { ...plan, batchId }, isOver)));
      continue;
    }
    const sentAtMs = time.nowMs();
    const result: BatchResult | "crashed" = await containers.serve((container) =>
      serveBatch(world, container, plan),
    );
    if (batchId === null) checkServed(world, result, sentAtMs);
    const isServed = result !== "crashed" && result.kind === "served";
    await time.sleep(random() * (isServed ? load.thinkMs : 3_000));
    const { pause } = world.weather();
    if (pause > 0 && random() < pause) await time.sleep(random() * longestPauseMs);
  }
}

function drawChunkMs({ random, weather, beInTrouble }: World, load: TrainerLoad): number {
  const { endlessChunk, longChunk } = weather();
  const longMs = endlessChunk > 0 && random() < endlessChunk ? random() * longestDeadlineMs : 0;
  const chunkMs = longMs > 0 ? longMs : random() < longChunk ? random() * 200_000 : 0;
  if (chunkMs === 0) return 100 + random() * 2 * load.chunkMs;
  beInTrouble(chunkMs + patienceMs, true); // others may wait in vain meanwhile
  return chunkMs;
}

/** What nothing can keep from being served is served. */
function checkServed(
  { watch, isQuietSince }: World,
  result: BatchResult | "crashed",
  sentAtMs: number,
): void {
  if (result === "crashed" || !isQuietSince(sentAtMs)) return;
  watch.counts.batchesOwed += 1;
  if (result.kind === "not_served") watch.violation("a batch was not served, though nothing failed");
}

/** One of several callers with one key: asks until it has an answer, and once more. None waits for ever. */
async function sendUntilAnswered(
  world: World,
  containers: Containers,
  plan: BatchPlan & { readonly batchId: string },
  isOver: () => boolean,
): Promise<void> {
  const { time, random } = world;
  for (let answers = 0; answers < 2 && !isOver(); ) {
    const asked = containers.serve((container) => serveBatch(world, container, plan));
    const result = await Promise.race([asked, time.sleep(60_000 + random() * 60_000).then(() => "timeout")]);
    if (typeof result === "object" && result.kind.startsWith("run_")) return;
    if (typeof result === "object" && result.answer !== undefined) answers += 1;
    await time.sleep(random() * (random() < 0.1 ? 100_000 : 3_000));
  }
}
