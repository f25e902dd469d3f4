/** What a pass of the sweep does, and what it must never do. */
import { afterEach, describe, expect, it } from "vitest";
import type { ListedSandbox, Sandboxes, StoredRow, Table } from "../../functions/pool/ports.ts";
import { beatRun } from "../../functions/pool/runs/heartbeat.ts";
import { plans } from "../../functions/pool/settings.ts";
import { sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { addWorker, createSweepWorld, type SweepWorld, type SweepWorldOptions } from "./sweep-world.ts";
import { anna } from "./test-pool.ts";

const worlds: SweepWorld[] = [];

function newWorld(options: SweepWorldOptions = {}): SweepWorld {
  const world = createSweepWorld(options);
  worlds.push(world);
  return world;
}

// Whatever a test did: there were never more sandboxes than slots, but for those a test added by hand.
afterEach(() => {
  for (const { cloud, settings, diesAtMs } of worlds.splice(0)) {
    expect(cloud.alive.size).toBeLessThanOrEqual(settings.slots);
    for (const id of cloud.alive.keys()) expect(diesAtMs.has(id)).toBe(true);
  }
});

describe("a pool with 150 sandboxes", () => {
  it("loses exactly its 40 orphans to two passes at once", async () => {
    const world = newWorld({ settings: { ...plans.pro, slots: 150 }, latencyMs: 20 });
    await world.register("run", 150);
    const fill = async () => {
      for (let slot = 0; slot < 110; slot += 1) await addWorker(world, slot, slot < 30 ? anna : null);
    };
    await world.clock.run(fill());
    const orphans = Array.from({ length: 40 }, (_, n) =>
      world.addSandbox({
        sandboxId: `orphan${n}`,
        // Of a slot that has another worker, of an earlier life, of an empty slot, and of none.
        ...([{ slot: n, generation: 1 }, { slot: n, generation: 0 }, { slot: 120 + n, generation: 1 }, {}][
          n % 4
        ] ?? {}),
      }),
    );
    expect(world.cloud.alive.size).toBe(150);
    const before = world.slots();
    // No time to create: what is left is what was there.
    const deadlineAtMs = world.clock.nowMs() + 5_000;
    const passes = [1, 2].map(() => sweepPool(world.context(), { deadlineAtMs }));
    const reports = await world.clock.run(Promise.all(passes));
    expect(world.cloud.alive.size).toBe(110);
    expect(orphans.filter((id) => world.cloud.alive.has(id))).toEqual([]);
    expect(world.slots()).toEqual(before);
    expect(reports.map(({ faultCount }) => faultCount)).toEqual([0, 0]);
  });
});

describe("a trainer whose GPU is silent for 30 minutes", () => {
  it("keeps its workers as long as it beats, and loses them when it doesn't", async () => {
    const world = newWorld({ createMs: 1_500 });
    await world.register("run", 2);
    await world.sweepFor(1);
    const workers = [...world.cloud.alive.keys()];
    expect(workers).toHaveLength(2);
    let shortestMs = Number.POSITIVE_INFINITY;
    await world.sweepFor(30, async () => {
      for (const atMs of world.diesAtMs.values())
        shortestMs = Math.min(shortestMs, atMs - world.clock.nowMs());
      expect((await beatRun(world.context(), "run")).kind).toBe("alive");
    });
    expect([...world.cloud.alive.keys()]).toEqual(workers);
    expect(shortestMs).toBeGreaterThanOrEqual(100_000);
    console.log(`shortest time to live in 30 minutes of silence: ${shortestMs / 1_000} s`);

    const silentSinceMs = world.clock.nowMs() - 60_000;
    await world.sweepFor(6);
    expect(world.cloud.alive.size).toBe(0);
    expect(world.clock.nowMs() - silentSinceMs).toBeLessThanOrEqual(480_000);
    expect(world.states()).toEqual(["empty", "empty"]);
    expect(world.starved).toEqual([]);
  });
});

describe("a provider whose list can't be trusted", () => {
  const broken = new Fault("sandbox_unavailable", "502");
  const lists: [string, (whole: ListedSandbox[]) => Promise<ListedSandbox[]>][] = [
    ["fails", () => Promise.reject(broken)],
    ["throws what nobody expected", () => Promise.reject(new TypeError("undefined is not a function"))],
    ["is silently empty", async () => []],
    ["silently misses half", async (whole) => whole.filter((_, index) => index % 2 === 0)],
  ];

  it.each(lists)("has no worker killed when it %s", async (_, list) => {
    const world = newWorld();
    await world.register("run", 6);
    for (let slot = 0; slot < 6; slot += 1) await addWorker(world, slot);
    await world.clock.pass(250_000); // long enough to be in every list, and for a renewal to be due
    const ctx = world.context();
    const sandboxes: Sandboxes = {
      ...ctx.sandboxes,
      list: async (poolId) => list(await ctx.sandboxes.list(poolId)),
    };
    const report = await world.sweep({ sandboxes });
    expect(world.cloud.killed).toEqual([]);
    expect(world.states()).toEqual(Array(6).fill("ready"));
    expect(report.did.renewed).toBe(6);
  });

  it("has nobody's worker killed when the table can't be read", async () => {
    const world = newWorld();
    await addWorker(world, 0);
    world.addSandbox({ sandboxId: "orphan" });
    const down = async () => Promise.reject(new Fault("store_unavailable", "throttled"));
    const report = await world.sweep({ table: { ...world.table, query: down } });
    expect(report).toMatchObject({
      found: null,
      faultCount: 1,
      faults: [{ action: "read", code: "store_unavailable" }],
    });
    expect(world.cloud.killed).toEqual([]);
    await world.sweep();
    expect(world.cloud.killed).toContain("orphan");
  });

  /** A pass whose list takes 20 s, in which two workers are made and leased; with the table as it was before, or as it is. */
  async function sweepSlowly(isTableReadFirst: boolean) {
    const world = newWorld({ latencyMs: 50 });
    await world.register("run", 2);
    const ctx = world.context();
    const before = new Map<string, StoredRow[]>();
    const table: Table = {
      ...world.table,
      query: async (pk, prefix) => before.get(pk) ?? world.table.query(pk, prefix),
    };
    const sandboxes: Sandboxes = {
      ...ctx.sandboxes,
      async list(poolId) {
        if (isTableReadFirst) before.set("pool", await world.table.query("pool"));
        await world.clock.sleep(20_000);
        const listed = await ctx.sandboxes.list(poolId);
        await world.clock.sleep(5_000);
        return listed;
      },
    };
    const deadlineAtMs = world.clock.nowMs() + 30_000;
    const pass = sweepPool(world.context({ sandboxes, table }), { deadlineAtMs });
    const [report, ...leases] = await world.clock.run(Promise.all([pass, world.lease(), world.lease()]));
    return { report, held: leases.map(({ workerId }) => workerId).toSorted(), killed: world.cloud.killed };
  }

  it("is asked before the table is read: a worker made in between is nobody's orphan", async () => {
    const { report, killed } = await sweepSlowly(false);
    expect(report).toMatchObject({ listed: 2, found: { leased: 2 }, did: { orphansKilled: 0, created: 0 } });
    expect(killed).toEqual([]);
  });

  it("would have workers killed under their holders in the other order", async () => {
    const { report, held, killed } = await sweepSlowly(true);
    expect(report.did.orphansKilled).toBe(2);
    expect(killed.toSorted()).toEqual(held);
  });
});

describe("two pools on one provider's key", () => {
  it("never touch each other's sandboxes", async () => {
    const one = newWorld({ poolId: "pool-1" });
    const other = createSweepWorld({ poolId: "pool-2", beside: one });
    await one.register("run", 2);
    await other.register("run", 3);
    await one.sweep();
    await other.sweep();
    const strays = [
      one.addSandbox({ poolId: "pool-1", sandboxId: "stray1" }),
      one.addSandbox({ poolId: "pool-2", sandboxId: "stray2" }),
    ];
    const ofPool = (id: string) => [...one.cloud.alive.values()].filter(({ poolId }) => poolId === id).length;
    expect([ofPool("pool-1"), ofPool("pool-2")]).toEqual([3, 4]);
    await one.sweep();
    expect(one.cloud.killed).toEqual(strays.slice(0, 1));
    await other.sweep();
    expect(one.cloud.killed).toEqual(strays);
    expect([ofPool("pool-1"), ofPool("pool-2")]).toEqual([2, 3]);
    await one.clock.pass(400_000); // both runs are over
    await one.sweep();
    expect([ofPool("pool-1"), ofPool("pool-2")]).toEqual([0, 3]);
    await other.sweep();
  });
});
