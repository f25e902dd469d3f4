/**
 * One point of the sweep: a trainer of some ranks over a pool that is warm. In each step every rank sends a batch, all
 * wait until the last one is answered, and then for as long as the GPU takes until the next.
 */
import { plans } from "../../functions/pool/settings.ts";
import { startRun } from "../../functions/pool/sweep/start-run.ts";
import { type Containers, createContainers } from "../simulation/containers.ts";
import { cron } from "../simulation/crons.ts";
import { calm } from "../simulation/weather.ts";
import { createWorld, seeded, type World } from "../simulation/world.ts";
import { latencies, rankSkewMs, readUnitsPerS, slotsPerWorker, thinkMs } from "./assumptions.ts";
import { countRequests, limitReads, noRequests, type RequestCounts } from "./counted.ts";
import { type Figures, figuresOf } from "./figures.ts";
import { type Handler, startHandler } from "./handlers.ts";
import { createBatches } from "./programs.ts";
import { createSupervisors, type Supervisors } from "./supervisors.ts";

export interface Point {
  readonly workers: number;
  /** Of each batch. */
  readonly samples: number;
  /** Sent at once in each step. */
  readonly batches: number;
  /** That are measured; another one warms up. */
  readonly steps: number;
}

export interface BatchSeen {
  readonly wallMs: number;
  readonly queueMs: number;
  readonly programs: number;
  readonly faults: number;
}

export interface Observed {
  readonly point: Point;
  readonly batches: readonly BatchSeen[];
  /** From when a step's first batch is sent until its last one is answered. */
  readonly stepsMs: readonly number[];
  /** From a step's first worker until it has had one for each that there is; infinite when it never has. */
  readonly crewMs: number;
  /** Of all workers, the time between steps included. */
  readonly paidMs: number;
  readonly busyMs: number;
  readonly chunks: number;
  readonly handlers: Requests;
  readonly sweeps: Requests;
  /** Of the table, in the second in which handlers read most. */
  readonly mostReadUnitsPerS: number;
  readonly violations: readonly string[];
  readonly events: number;
}

export type Requests = Omit<RequestCounts, "readUnitsAtS">;

/** What may be worse than it usually is. */
export interface Outside {
  readonly readUnitsPerS: number;
}

const runId = "training";
/** As long as a batch may take. */
const deadlineMs = 840_000;

interface Scene {
  readonly world: World;
  readonly supervisors: Supervisors;
  readonly containers: Containers<Handler>;
  readonly handlers: RequestCounts;
  readonly sweeps: RequestCounts;
  /** When handlers had each of their workers. */
  readonly leasedAtMs: number[];
}

/** Lives through a point; the same again from the same seed. */
export async function runPoint(
  point: Point,
  seed: number,
  outside: Outside = { readUnitsPerS },
): Promise<Figures> {
  const scene = setScene(point, seed, outside);
  const observed = await scene.world.time.run(live(scene, point, seed), 48 * 3_600_000);
  return figuresOf(observed, slotsPerWorker);
}

function setScene(point: Point, seed: number, outside: Outside): Scene {
  const handlers = noRequests();
  const sweeps = noRequests();
  const supervisors = createSupervisors(() => base);
  const plan = point.workers <= plans.hobby.slots ? plans.hobby : plans.pro;
  const base: World = createWorld({
    seed,
    weather: calm,
    settings: { ...plan, lifeMs: plans.pro.lifeMs },
    latencies,
    supervise: supervisors.supervise,
    mutate: (table) => limitReads(table, outside.readUnitsPerS, () => base.time.nowMs()),
  });
  const world = { ...base, contextOf: (process) => countRequests(base.contextOf(process), sweeps) } as World;
  const leasedAtMs: number[] = [];
  const noteLease = () => void leasedAtMs.push(base.time.nowMs());
  const containers = createContainers(base, (number) =>
    startHandler(base, `h${number}`, handlers, noteLease),
  );
  return { world, supervisors, containers, handlers, sweeps, leasedAtMs };
}

async function live(scene: Scene, point: Point, seed: number): Promise<Observed> {
  const { world, supervisors, handlers, sweeps } = scene;
  const { time } = world;
  const makeBatch = createBatches(seeded(seed ^ 0x2545f491));
  await warmUp(scene, point);
  const send = () => sendStep(scene, point, () => makeBatch(point.samples, deadlineMs));
  await send();
  const before = { atMs: time.nowMs(), busyMs: supervisors.busyMs(), chunks: supervisors.chunks() };
  const [handlersBefore, sweepsBefore] = [{ ...handlers }, { ...sweeps }];
  const steps: Step[] = [];
  for (let step = 0; step < point.steps; step += 1) {
    await time.sleep(thinkMs);
    steps.push(await send());
  }
  const isWhole = world.cloud.alive.size === point.workers;
  if (!isWhole) world.watch.violation("the pool has changed", `${world.cloud.alive.size} workers`);
  world.clearUp();
  return {
    point,
    batches: steps.flatMap(({ batches }) => batches),
    stepsMs: steps.map(({ wallMs }) => wallMs),
    crewMs: Math.max(...steps.map(({ crewMs }) => crewMs)),
    paidMs: (time.nowMs() - before.atMs) * point.workers,
    busyMs: supervisors.busyMs() - before.busyMs,
    chunks: supervisors.chunks() - before.chunks,
    handlers: difference(handlers, handlersBefore),
    sweeps: difference(sweeps, sweepsBefore),
    mostReadUnitsPerS: Math.max(...handlers.readUnitsAtS.values()),
    violations: world.watch.violations.map(({ what }) => what),
    events: time.events(),
  };
}

async function warmUp({ world, containers }: Scene, { workers }: Point): Promise<void> {
  await containers.serve(({ ctx }) => startRun(ctx, runId, { name: runId, workers, metadata: {} }));
  void cron(world);
  while (world.truth.rows().filter(({ st }) => st === "ready").length < workers)
    await world.time.sleep(1_000);
}

interface Step {
  readonly batches: readonly BatchSeen[];
  readonly wallMs: number;
  readonly crewMs: number;
}

async function sendStep(
  { world, containers, leasedAtMs }: Scene,
  point: Point,
  makeBatch: () => ReturnType<ReturnType<typeof createBatches>>,
): Promise<Step> {
  const { time, random } = world;
  const sentAtMs = time.nowMs();
  leasedAtMs.length = 0;
  const send = async (): Promise<BatchSeen> => {
    await time.sleep(random() * rankSkewMs);
    const askedAtMs = time.nowMs();
    const answer = await containers.serve((handler) => handler.grade(runId, makeBatch()));
    if (answer === "crashed") throw new Error("a handler died in the calm");
    const { rewards, usage } = answer;
    const faults = rewards.filter((reward) => reward === null).length;
    const wallMs = time.nowMs() - askedAtMs;
    return { wallMs, queueMs: usage.queueMs, programs: usage.programsRun, faults };
  };
  const batches = await Promise.all(Array.from({ length: point.batches }, send));
  const [first = 0, last = Number.POSITIVE_INFINITY] = [leasedAtMs[0], leasedAtMs[point.workers - 1]];
  return { batches, wallMs: time.nowMs() - sentAtMs, crewMs: last - first };
}

function difference(after: Requests, before: Requests): Requests {
  return {
    tableRequests: after.tableRequests - before.tableRequests,
    writeUnits: after.writeUnits - before.writeUnits,
    readUnits: after.readUnits - before.readUnits,
    controlRequests: after.controlRequests - before.controlRequests,
  };
}
