/** Worlds without faults: equal callers who want more than there is, writes that are counted, a run that is silent. */

import { beatRun } from "../../functions/pool/runs/heartbeat.ts";
import { registerRun } from "../../functions/pool/runs/register.ts";
import { runLifeMs } from "../../functions/pool/runs/run-row.ts";
import { startRun } from "../../functions/pool/sweep/start-run.ts";
import { type Container, startContainer } from "./containers.ts";
import { cron } from "./crons.ts";
import { serveBatch } from "./serving.ts";
import type { Violation } from "./watch.ts";
import { calm } from "./weather.ts";
import { createWorld } from "./world.ts";

export interface FairnessResult {
  readonly callers: number;
  readonly slots: number;
  readonly batches: number;
  /** (Σx)² / nΣx² over the batches that each caller was served: 1 when all are equal. */
  readonly jain: number;
  readonly medianWaitMs: number;
  readonly p95WaitMs: number;
  readonly longestWaitMs: number;
  readonly violations: readonly Violation[];
}

/** Equal callers, each with a container and a run of its own, always wanting one worker more. */
export async function contend(
  seed: number,
  { callers = 24, slots = 4, loadMs = 1_800_000 } = {},
): Promise<FairnessResult> {
  const world = createWorld({ seed, weather: calm, settings: { slots } });
  const { time, random } = world;
  const served = new Array<number>(callers).fill(0);
  const waits: number[] = [];
  // First the workers have to be created, at the plan's pace.
  const warmAtMs = time.nowMs() + 120_000;
  const call = async (caller: number) => {
    const container = startContainer(world, `c${caller}`);
    const runId = `run${caller}`;
    await registerRun(container.ctx, runId, { name: runId, workers: 1, metadata: {} });
    await time.sleep(random() * 5_000);
    while (world.isLoaded()) {
      const chunkMs = () => 300 + random() * 3_700;
      const batch = await serveBatch(world, container, {
        ...{ runId, batchId: null, workers: 1, waitMs: 600_000, chunkMs },
      });
      if (batch.kind !== "served") continue;
      if (time.nowMs() < warmAtMs) continue;
      served[caller] = (served[caller] ?? 0) + 1;
      waits.push(batch.waitedMs);
      await time.sleep(random() * 1_000);
    }
  };
  const life = async () => {
    const all = [cron(world), ...served.map((_, caller) => call(caller))];
    await time.sleep(loadMs);
    world.clearUp();
    await Promise.all(all);
  };
  await time.run(life(), 2 * loadMs + 1_800_000);
  waits.sort((one, other) => one - other);
  const at = (part: number) => Math.round(waits[Math.floor(part * (waits.length - 1))] ?? 0);
  const sum = served.reduce((total, count) => total + count, 0);
  const squares = served.reduce((total, count) => total + count * count, 0);
  return {
    callers,
    slots,
    batches: sum,
    jain: Number(((sum * sum) / (callers * squares)).toFixed(4)),
    medianWaitMs: at(0.5),
    p95WaitMs: at(0.95),
    longestWaitMs: at(1),
    violations: world.watch.violations,
  };
}

export interface CostResult {
  readonly batches: number;
  readonly leases: number;
  readonly writes: number;
  /** What they may be: two per leased worker, one per batch, and each run's sign of life, which no sweep writes here. */
  readonly allowedWrites: number;
  readonly reads: number;
  readonly violations: readonly Violation[];
}

/** Counts what batches of some runs do to the table, once the workers are there; the cron stays out of it. */
export async function countWrites(seed: number, batches: number): Promise<CostResult> {
  const world = createWorld({ seed, weather: calm, settings: { slots: 8 } });
  const { time, random, truth, watch } = world;
  let sent = 0;
  const containers = Array.from({ length: 4 }, (_, index) => startContainer(world, `c${index}`));
  const send = async (container: Container, upTo: number) => {
    const runId = `run-${container.process.name}`;
    while (sent < upTo) {
      sent += 1;
      const chunkMs = () => 200 + random() * 1_500;
      const served = await serveBatch(world, container, {
        ...{ runId, batchId: null, workers: 2, waitMs: 60_000, chunkMs },
      });
      if (served.kind !== "served") watch.violation("not served without a fault", served.kind);
      await time.sleep(random() * 500);
    }
  };
  const life = async () => {
    for (const { ctx, process } of containers) {
      const runId = `run-${process.name}`;
      await registerRun(ctx, runId, { name: runId, workers: 2, metadata: {} });
    }
    await Promise.all(containers.map((container) => send(container, 40)));
    const before = { ...truth.counts, leases: watch.counts.leases, atMs: time.nowMs() };
    await Promise.all(containers.map((container) => send(container, 40 + batches)));
    const leases = watch.counts.leases - before.leases;
    const signsOfLife = Math.ceil((2 * (time.nowMs() - before.atMs)) / runLifeMs) * containers.length;
    const collisions = Math.ceil(leases / 125); // two go for the same worker at once: up to 13 of 2,500 in a million batches
    return {
      batches,
      leases,
      writes: truth.counts.writes - before.writes,
      allowedWrites: 2 * leases + batches + signsOfLife + collisions,
      reads: truth.counts.gets + truth.counts.queries - before.gets - before.queries,
      violations: watch.violations,
    };
  };
  return time.run(life(), 6 * 3_600_000);
}

export interface SilenceResult {
  /** Of a run's workers at its start and half an hour later. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  /** The least time to live that any of them had left meanwhile. */
  readonly leastTtlMs: number;
  /** For how long a sandbox was there that no slot knew. */
  readonly strayMs: number;
}

/** A run that only beats for half an hour, as while a model is evaluated. */
export async function stayIdle(seed: number): Promise<SilenceResult> {
  const world = createWorld({ seed, weather: calm, settings: { slots: 4 } });
  const { time, cloud } = world;
  const { ctx } = startContainer(world, "c");
  const life = async () => {
    await startRun(ctx, "run", { name: "run", workers: 3, metadata: {} });
    void cron(world);
    const before = [...cloud.alive.keys()].toSorted();
    const stray = cloud.addStray();
    let strayMs = 0;
    let leastTtlMs = Number.POSITIVE_INFINITY;
    for (let second = 0; second < 1_800; second += 1) {
      if (second % 60 === 0) await beatRun(ctx, "run");
      await time.sleep(1_000);
      if (cloud.alive.has(stray)) strayMs += 1_000;
      for (const { sandboxId, diesAtMs } of cloud.alive.values())
        if (sandboxId !== stray) leastTtlMs = Math.min(leastTtlMs, diesAtMs - time.nowMs());
    }
    world.clearUp();
    return { before, after: [...cloud.alive.keys()].toSorted(), leastTtlMs, strayMs };
  };
  return time.run(life(), 3 * 3_600_000);
}

/** All workers of a run that only beats end at once; how long until it has as many again, or null after half an hour. */
export async function loseIdleWorkers(seed: number): Promise<number | null> {
  const world = createWorld({ seed, weather: calm, settings: { slots: 4 } });
  const { time, cloud } = world;
  const { ctx } = startContainer(world, "c");
  const life = async () => {
    await startRun(ctx, "run", { name: "run", workers: 3, metadata: {} });
    void cron(world);
    await time.sleep(120_000); // a list may lack what is younger
    await beatRun(ctx, "run");
    const had = cloud.alive.size;
    cloud.endMany(1);
    let tookMs: number | null = null;
    for (let second = 1; second < 1_800 && tookMs === null; second += 1) {
      if (second % 60 === 0) await beatRun(ctx, "run");
      await time.sleep(1_000);
      if (cloud.alive.size === had) tookMs = second * 1_000;
    }
    world.clearUp();
    return tookMs;
  };
  return time.run(life(), 3 * 3_600_000);
}
