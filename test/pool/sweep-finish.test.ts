/** Finishing a run: the answer comes when the provider itself shows nothing of it any more. */
import { afterEach, describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { enterRun } from "../../functions/pool/runs/enter.ts";
import { markFinished } from "../../functions/pool/runs/finish.ts";
import { getRun } from "../../functions/pool/runs/read.ts";
import { defaultRunId } from "../../functions/pool/runs/run-row.ts";
import { shortTag } from "../../functions/pool/slot-row.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { finishRun } from "../../functions/pool/sweep/finish-run.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { someChunk } from "./fake-cloud.ts";
import {
  addWorker,
  createSweepWorld,
  dyingAt,
  type SweepWorld,
  type SweepWorldOptions,
} from "./sweep-world.ts";
import { present } from "./test-pool.ts";

const worlds: SweepWorld[] = [];

function newWorld(options: SweepWorldOptions = {}): SweepWorld {
  const world = createSweepWorld(options);
  worlds.push(world);
  return world;
}

afterEach(() => {
  for (const { cloud, settings } of worlds.splice(0)) {
    expect(cloud.mostAlive()).toBeLessThanOrEqual(settings.slots);
  }
});

const finish = (world: SweepWorld, runId = "run", overrides = {}) =>
  world.clock.run(finishRun(world.context(overrides), runId));

describe("the only run", () => {
  it("leaves nothing: free workers, held ones, and those being created", async () => {
    const world = newWorld({ createMs: 3_000 });
    await world.register("run", 4);
    await addWorker(world, 0);
    await addWorker(world, 1, { runTag: shortTag("run"), batchTag: "b" });
    const held = await world.clock.run(world.lease());
    const coming = world.lease().catch((error: unknown) => error);
    await world.clock.pass(500);
    expect(world.states()).toEqual(["creating", "leased", "leased"]);
    const startedAtMs = world.clock.nowMs();
    const answer = await finish(world);
    expect(answer).toMatchObject({ kind: "finished", remainingSandboxes: [], faults: [] });
    expect(world.cloud.alive.size).toBe(0);
    console.log(`finished in ${world.clock.nowMs() - startedAtMs} ms of virtual time`);
    await expect(
      world.clock.run(drainEvents(held.execute(someChunk, new AbortController().signal))),
    ).rejects.toThrow();
    await world.clock.pass(120_000);
    await coming;
    expect(world.cloud.alive.size).toBe(0);
    await world.sweepFor(3);
    expect(world.states().filter((state) => state !== "empty")).toEqual([]);
  });

  it("stops programs that run for it within two seconds", async () => {
    const world = newWorld({ latencyMs: 30 });
    await world.register("run", 1);
    const lease = await world.clock.run(world.lease());
    void drainEvents(lease.execute(someChunk, new AbortController().signal)).catch(() => {});
    await world.clock.pass(1_000);
    const beganAtMs = world.clock.nowMs();
    const kill = world.cloud.sandboxes.kill;
    let killedAtMs = 0;
    world.cloud.sandboxes.kill = async (id) => {
      killedAtMs = world.clock.nowMs();
      return kill(id);
    };
    await finish(world);
    expect(killedAtMs - beganAtMs).toBeLessThan(2_000);
    expect(world.cloud.killed).toEqual([lease.workerId]);
  });

  it("leaves no worker of an older version either", async () => {
    const world = newWorld();
    await world.register("run", 2);
    await world.sweep({ settings: { ...world.settings, supervisorVersion: "v0" } });
    expect(world.cloud.alive.size).toBe(2);
    expect(await finish(world)).toMatchObject({ remainingSandboxes: [] });
    expect(world.cloud.alive.size).toBe(0);
  });

  it("says the same when it is finished again", async () => {
    const world = newWorld();
    await world.register("run", 2);
    await world.sweep();
    await world.clock.pass(100_000);
    const first = await finish(world);
    await world.clock.pass(100_000);
    const second = await finish(world);
    if (first.kind !== "finished" || second.kind !== "finished") throw new Error("not finished");
    const said = ({ run: { totals, finishedAtMs }, remainingSandboxes }: typeof first) =>
      JSON.stringify({ totals, finishedAtMs, remainingSandboxes });
    expect(said(second)).toBe(said(first));
    expect(first.run.totals.idleMs).toBeGreaterThan(190_000);
  });

  it("that nobody registered is not found", async () => {
    expect(await finish(newWorld())).toEqual({ kind: "run_not_found" });
  });
});

describe("a run among others", () => {
  it("takes what is above the others' target, its own first, and no lease of theirs", async () => {
    const world = newWorld();
    await world.register("run", 3);
    await world.register("other", 2);
    for (let slot = 0; slot < 3; slot += 1) await addWorker(world, slot);
    await world.sweep(); // two more, for the other
    const held = await world.clock.run(world.lease({ runId: "other" }));
    const others = world
      .slots()
      .filter(({ createdForRun }) => createdForRun === shortTag("other"))
      .map(({ sandboxId }) => sandboxId);
    expect(others).toHaveLength(2);
    expect(await finish(world)).toMatchObject({ remainingSandboxes: [] });
    expect(world.cloud.alive.size).toBe(2);
    expect(world.cloud.alive.has(held.workerId)).toBe(true);
    const left = [...world.cloud.alive.keys()];
    expect(left.every((id) => others.includes(id) || id === held.workerId)).toBe(true);
  });
});

describe("a provider that makes it hard", () => {
  it("has what would not die told after 30 s", async () => {
    const world = newWorld();
    await world.register("run", 1);
    await world.sweep();
    const [id = ""] = world.cloud.alive.keys();
    world.cloud.kills = "failed";
    const beganAtMs = world.clock.nowMs();
    expect(await finish(world)).toMatchObject({ kind: "finished", remainingSandboxes: [id] });
    expect(world.clock.nowMs() - beganAtMs).toBeGreaterThanOrEqual(30_000);
    expect(world.clock.nowMs() - beganAtMs).toBeLessThan(32_000);
    world.cloud.kills = "done";
    expect(await finish(world)).toMatchObject({ remainingSandboxes: [] });
  });

  it("is asked again when a list fails, and believed only when it answers", async () => {
    const world = newWorld();
    await world.register("run", 1);
    await world.sweep();
    const ctx = world.context();
    let failures = 3;
    const list = async (poolId: string) => {
      failures -= 1;
      if (failures >= 0) throw new Fault("sandbox_unavailable", "502");
      return ctx.sandboxes.list(poolId);
    };
    const answer = await finish(world, "run", { sandboxes: { ...ctx.sandboxes, list } });
    expect(answer).toMatchObject({ remainingSandboxes: [] });
    expect(world.cloud.alive.size).toBe(0);
  });

  it("never answers as if nothing were left when it doesn't say what it has", async () => {
    const world = newWorld();
    await world.register("run", 1);
    await world.sweep();
    const { sandboxes } = world.context();
    const list = () => Promise.reject(new Fault("sandbox_unavailable", "502"));
    await expect(finish(world, "run", { sandboxes: { ...sandboxes, list } })).rejects.toMatchObject({
      code: "sandbox_unavailable",
    });
    expect((await getRun(world.context(), "run"))?.finishedAtMs).toBeDefined();
    expect(await finish(world)).toMatchObject({ remainingSandboxes: [] });
  });
});

describe("a handler that died while it created a worker", () => {
  it.each([
    ["before it asked", 0, "before"],
    ["after it asked", 1, "after"],
  ] as const)("%s: nothing is left 60 s after the finish", async (_, createCall, when) => {
    const world = newWorld({ createMs: 2_000 });
    await world.register("run", 2);
    let creations = 0;
    const ctx = world.context();
    const workers: typeof ctx.workers = {
      ...ctx.workers,
      create: async (order, signal) => {
        creations += 1;
        if (when === "before" && creations > createCall) return new Promise<never>(() => {});
        await ctx.workers.create(order, signal);
        return new Promise<never>(() => {});
      },
    };
    void world.lease({}, { workers }).catch(() => {});
    await world.clock.pass(500);
    expect(world.states()).toEqual(["creating"]);
    const answer = await finish(world);
    expect(answer).toMatchObject({ remainingSandboxes: [] });
    await world.sweepFor(1);
    expect(world.cloud.alive.size).toBe(0);
  });
});

describe("a trainer that vanishes", () => {
  it.each([1, 2, 3, 5, 8, 13])(
    "has no sandbox 8 minutes after its last beat, its handler dead at call %i",
    async (at) => {
      const world = newWorld({ createMs: 1_500, latencyMs: 20 });
      await world.register("run", 3);
      await world.sweepFor(1);
      const lastBeatAtMs = world.clock.nowMs();
      await world.register("run", 3);
      void world.lease({}, dyingAt(world.context(), at, "after")).catch(() => {});
      void world.lease({}, dyingAt(world.context(), at + 3, "before")).catch(() => {});
      await world.clock.pass(0);
      while (world.clock.nowMs() < lastBeatAtMs + 420_000) await world.sweepFor(1);
      expect(world.cloud.alive.size).toBe(0);
      expect(world.clock.nowMs() - lastBeatAtMs).toBeLessThanOrEqual(480_000);
    },
  );
});

async function drainEvents(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events) void _;
}

describe("the default run, which its next batch brings back", () => {
  it("keeps the workers of a batch that began while a pass was reading", async () => {
    const world = newWorld();
    const ctx = world.context();
    await world.clock.run(enterRun(ctx, defaultRunId));
    await addWorker(world, 0);
    await world.clock.run(markFinished(ctx, defaultRunId));
    let reads = 0;
    /** Between the two parts of what a pass reads, a batch enters the run and takes the worker. */
    const table: Table = {
      ...world.table,
      async query(...call) {
        reads += 1;
        if (reads === 2) {
          await enterRun(ctx, defaultRunId);
          present(await acquireSlot(ctx, 0, { runTag: shortTag(defaultRunId), batchTag: "b" }));
        }
        return world.table.query(...call);
      },
    };
    const report = await world.sweep({ table });
    expect(reads).toBeGreaterThanOrEqual(2);
    expect(report.did.leasesEnded).toBe(0);
    expect(world.states()[0]).toBe("leased");
  });
});
