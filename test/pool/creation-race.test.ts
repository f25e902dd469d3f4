/** A search goes on while its creation is under way: whichever worker is there first is taken. */
import { describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { registerRun } from "../../functions/pool/runs/register.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { createWorld, type World } from "./lease-world.ts";
import { present, testHandler } from "./test-pool.ts";

/** From now on the provider says nothing for as long as a creation may take. */
function hang({ clock, cloud }: World): void {
  Object.assign(cloud.workers, {
    async create() {
      cloud.createdAtMs.push(clock.nowMs());
      await clock.sleep(45_000);
      return { kind: "ambiguous", fault: new Fault("sandbox_unavailable", "no answer") };
    },
  });
}

describe("a search whose creation hangs", () => {
  it.each([
    ["of another container", (world: World) => [world.container(), world.container()] as const],
    [
      "of its own container",
      (world: World) => {
        const one = world.container();
        return [one, one] as const;
      },
    ],
  ])("takes a worker %s that becomes free meanwhile", async (_, containers) => {
    const world = createWorld();
    const { clock, cloud } = world;
    const [holder, waiter] = containers(world);
    const lease = present(await clock.run(holder.acquire()));
    await clock.pass(2_000);
    hang(world);
    const startedAtMs = clock.nowMs();
    const waiting = waiter.acquire({ waitMs: 30_000, demand: { batchId: "waits" } });
    await clock.pass(1_000);
    await clock.run(lease.release("healthy"));
    const got = present(await clock.run(waiting));
    expect(got).toMatchObject({ workerId: lease.workerId, created: false });
    expect(clock.nowMs() - startedAtMs).toBeLessThan(3_000);
    expect(cloud.createdAtMs).toHaveLength(2);
    await clock.run(waiter.settled());
    expect((await world.states()).toSorted()).toEqual(["creating", "leased"]);
  });

  it("begins no second one, and says at its deadline why it has no worker", async () => {
    const world = createWorld();
    hang(world);
    const waiting = world.container().acquire({ waitMs: 30_000 });
    await expect(world.clock.run(waiting)).rejects.toMatchObject({ code: "sandbox_unavailable" });
    expect(world.cloud.createdAtMs).toHaveLength(1);
  });

  it("doesn't say so once it is known that nobody answers for another reason", async () => {
    const world = createWorld();
    const { clock } = world;
    const troubles: (string | null)[] = [];
    hang(world);
    const onTrouble = (fault: Fault | null) => troubles.push(fault?.code ?? null);
    const gone = new AbortController();
    const waiting = world.container().acquire({ waitMs: 30_000, signal: gone.signal, onTrouble });
    await clock.pass(12_000);
    gone.abort();
    expect(await clock.run(waiting)).toBeNull();
    await clock.pass(60_000);
    expect(troubles).toEqual(["sandbox_unavailable"]); // nobody is told after the search
  });
});

describe("a creation that lost the race", () => {
  it("is published free, and the next one has it", async () => {
    const world = createWorld({ createMs: 5_000 });
    const { clock } = world;
    const lease = present(await clock.run(world.container().acquire()));
    const waiter = world.container();
    const waiting = waiter.acquire({ demand: { batchId: "waits" } });
    await clock.pass(2_000);
    await clock.run(lease.release("healthy"));
    expect(present(await clock.run(waiting)).workerId).toBe(lease.workerId);
    await clock.run(waiter.settled());
    expect((await world.states()).toSorted()).toEqual(["leased", "ready"]);
    const next = present(await clock.run(world.container().acquire()));
    expect(next.created).toBe(false);
  });

  it("leaves nothing leased to nobody, whenever the other worker becomes free", async () => {
    const hows = new Set<string>();
    for (let freeAtMs = 2_900; freeAtMs <= 3_400; freeAtMs += 10) {
      for (const isSame of [true, false]) {
        const world = createWorld({ createMs: 3_000, latencyMs: 60, seed: freeAtMs });
        const { clock } = world;
        const holder = world.container();
        const waiter = isSame ? holder : world.container();
        const lease = present(await clock.run(holder.acquire()));
        const waiting = waiter.acquire({ demand: { batchId: "waits" } });
        await clock.pass(freeAtMs);
        const [got] = await clock.run(Promise.all([waiting, lease.release("healthy")]));
        await clock.run(Promise.all([waiter.settled(), holder.settled()]));
        expect((await world.states()).toSorted()).toEqual(["leased", "ready"]);
        hows.add(present(got).created ? "created" : "freed");
        await clock.run(present(got).release("healthy"));
        expect(await world.states()).toEqual(["ready", "ready"]);
      }
    }
    expect(hows).toEqual(new Set(["created", "freed"]));
  });
});

describe("searches of one container with no worker there", () => {
  it("create at the pool's pace without getting into each other's way", async () => {
    const { clock, cloud, table, container } = createWorld({ createMs: 2_000, latencyMs: 10 });
    const handler = container();
    const all = Array.from({ length: 12 }, () => handler.acquire());
    await clock.run(Promise.all(all));
    expect(cloud.createdAtMs).toHaveLength(12);
    expect(table.counts.refusals).toBeLessThanOrEqual(2);
  });
});

it("a new worker is its batch's while what its start cost is still being noted", async () => {
  const world = createWorld({ createMs: 2_000 });
  const { clock } = world;
  await clock.run(registerRun(testHandler(world.table), "run", { name: "run", workers: 1, metadata: {} }));
  const slow: Table = {
    ...world.table,
    async update(key, expression, values) {
      if (expression.name === "note start of worker") await clock.sleep(16_000);
      return world.table.update(key, expression, values);
    },
  };
  const handler = world.container({ table: slow });
  const startedAtMs = clock.nowMs();
  const lease = present(await clock.run(handler.acquire()));
  expect(clock.nowMs() - startedAtMs).toBeLessThan(3_000);
  await clock.run(handler.settled());
  expect(world.table.log.map(({ verb }) => verb)).toContain("note start of worker");
  await clock.run(lease.release("healthy"));
});
