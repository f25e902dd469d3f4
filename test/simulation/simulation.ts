/** A world's life: a load in some weather, then calm, in which everything must heal and end. */
import type { Table } from "../../functions/pool/ports.ts";
import { finishRun } from "../../functions/pool/sweep/finish-run.ts";
import { cron, sweepOnce } from "./crons.ts";
import { haveDeploys } from "./deploys.ts";
import { haveIncidents } from "./incidents.ts";
import { type Leftovers, watchLeftovers } from "./leftovers.ts";
import { watchRecovery } from "./recovery.ts";
import { type TrainerLoad, trainer } from "./trainers.ts";
import type { Counts, Violation } from "./watch.ts";
import { calm, type Weather } from "./weather.ts";
import { weathers } from "./weathers.ts";
import { createWorld, seeded, type World } from "./world.ts";

export interface SimulationOptions {
  readonly seed: number;
  /** By the seed, if not given. */
  readonly weather?: Weather;
  readonly loadMs?: number;
  /** Changes the table under everybody. */
  readonly mutate?: (table: Table) => Table;
}

export interface SimulationResult extends Leftovers {
  readonly seed: number;
  readonly world: string;
  readonly counts: Counts;
  readonly violations: readonly Violation[];
  readonly simulatedMs: number;
  readonly events: number;
}

/** Lives through one world. */
export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const draw = seeded(options.seed ^ 0x5bd1e995);
  const weather = options.weather ?? weathers[options.seed % weathers.length] ?? calm;
  const slots = 1 + Math.floor(draw() * 6);
  // Short lives, so that rotation is part of it.
  const drawnLifeMs = draw() < 0.5 ? 1_200_000 : 3_600_000;
  const { lifeMs = drawnLifeMs } = weather;
  const world = createWorld({
    seed: options.seed,
    weather,
    settings: { slots, lifeMs },
    ...(options.mutate === undefined ? {} : { mutate: options.mutate }),
  });
  const trainers = 1 + Math.floor(draw() * 4);
  const loadMs = options.loadMs ?? 2_400_000;
  const found: Leftovers = { longestAfterFinishMs: 0, longestAfterBeatMs: 0 };
  const { time } = world;
  const startedAtMs = time.nowMs();
  const life = async () => {
    const loads = Array.from({ length: trainers }, (_, index) =>
      trainer(world, `t${index + 1}`, drawLoad(draw, slots)),
    );
    const others = [
      cron(world),
      ...(weather.keepsTimes ? [watchLeftovers(world, found)] : []),
      ...(weather.isMended ? [watchRecovery(world)] : []),
      ...(weather.isDeployed ? [haveDeploys(world)] : []),
      haveIncidents(world),
    ];
    await time.sleep(loadMs);
    world.clearUp();
    await heal(world, [...loads, ...others]);
  };
  await time
    .run(life(), loadMs + 3 * 3_600_000)
    .catch((error: unknown) => world.watch.violation("stuck", String((error as Error).stack)));
  // Without a cron a creator who died may have been the end of the only slot.
  if (world.watch.counts.batches === 0 && weather.cronMissing < 1) world.watch.violation("nobody was served");
  return {
    seed: options.seed,
    world: weather.name,
    ...found,
    counts: world.watch.counts,
    violations: world.watch.violations,
    simulatedMs: time.nowMs() - startedAtMs,
    events: time.events(),
  };
}

function drawLoad(draw: () => number, slots: number): TrainerLoad {
  return {
    workers: 1 + Math.floor(draw() * slots),
    concurrency: 1 + Math.floor(draw() * draw() * 4),
    thinkMs: 2_000 * draw(),
    chunkMs: 50 + 700 * draw(),
    runMs: 120_000 + 1_200_000 * draw(),
    heartbeats: draw() < 0.8,
  };
}

/** After the storm: whoever still stands thaws, the cron comes each minute, and at last everything is finished. */
async function heal(world: World, others: readonly Promise<void>[]): Promise<void> {
  const { time, watch, cloud } = world;
  const settled = Promise.all(others);
  settled.catch(() => {});
  for (let minute = 0; minute < 15; minute += 1) {
    await time.sleep(60_000);
    await sweepOnce(world, `heal${minute}`, calm.crons);
  }
  await settled;
  for (const what of unhealed(world)) watch.violation(what);
  const ctx = world.contextOf(world.startProcess("last", calm.handlers));
  for (const [runId, { finishedAtMs }] of world.runs) {
    if (finishedAtMs !== null) continue;
    const finish = await finishRun(ctx, runId);
    if (finish.kind !== "finished") watch.violation("a run was lost", runId);
  }
  await world.told.check(ctx, watch);
  if (cloud.alive.size > 0)
    watch.violation("a sandbox is left in the end", [...cloud.alive.keys()].join(" "));
}

/** What a pool at rest must not look like. */
function unhealed({ truth, cloud }: World): string[] {
  const slots = truth.rows().filter(({ sk }) => String(sk).startsWith("S#"));
  const found: string[] = [];
  for (const { st } of slots) if (st !== "ready" && st !== "empty") found.push(`a slot stays ${st}`);
  const known = slots.map(({ sb }) => sb);
  if ([...cloud.alive.keys()].some((id) => !known.includes(id))) found.push("a sandbox that no slot knows");
  if (slots.some(({ sb }) => sb !== undefined && !cloud.alive.has(String(sb))))
    found.push("a slot without its sandbox");
  return found;
}
