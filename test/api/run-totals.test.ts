/** A run's totals are what was graded for it: each answer that somebody got counts once, whatever broke on the way. */
import { describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { failing } from "../pool/broken-table.ts";
import { seeded } from "../pool/test-pool.ts";
import { batchOf, createRunsWorld, type RunsWorld } from "./runs-world.ts";

const keyed = (key: string, sources = ["right", "crash"]) => ({
  method: "POST",
  body: batchOf(sources, { run_id: "r" }),
  headers: { "idempotency-key": key },
});

async function totalsOf(world: RunsWorld) {
  return (await world.container().call("/v1/runs/r")).body.totals;
}

/** Its process dies at the given call, before or after that was applied: nothing it does afterwards comes through. */
function dyingAt(table: Table, callNumber: number, when: "before" | "after") {
  let calls = 0;
  const never = new Promise<never>(() => {});
  async function call<T>(effect: () => Promise<T>): Promise<T> {
    calls += 1;
    if (calls > callNumber || (calls === callNumber && when === "before")) return never;
    const answer = await effect();
    return calls >= callNumber ? never : answer;
  }
  const dying: Table = {
    get: (key) => call(() => table.get(key)),
    query: (...range) => call(() => table.query(...range)),
    update: (...write) => call(() => table.update(...write)),
  };
  return { table: dying, calls: () => calls };
}

const graded = { batches: 1, samples: 2, faults: 0, retries: 0 };

describe("a batch with a key is counted once", () => {
  it("when its answer could not be recorded, and it was graded again", async () => {
    const world = createRunsWorld();
    let isOff = true;
    const table = failing(world.table, (verb) => (isOff && verb === "answer batch" ? "unsent" : "no"));
    const one = world.container({ table });
    await one.register("r", 1);
    expect(await one.call("/v1/rewards", keyed("k"))).toMatchObject({
      status: 503,
      body: { code: "store_unavailable" },
    });
    isOff = false;
    expect((await one.call("/v1/rewards", keyed("k"))).body.rewards).toEqual([1, 0]);
    expect(await totalsOf(world)).toMatchObject(graded);
  });

  it("when the answer to its recording was lost each time, and the record has it", async () => {
    const world = createRunsWorld();
    let isOff = true;
    const table = failing(world.table, (verb) => {
      if (verb === "answer batch") return isOff ? "answer_lost" : "no";
      return isOff && verb === "get" && world.table.log.some((write) => write.verb === "answer batch")
        ? "unsent"
        : "no";
    });
    const one = world.container({ table });
    await one.register("r", 1);
    expect((await one.call("/v1/rewards", keyed("k"))).status).toBe(503);
    isOff = false;
    const again = await one.call("/v1/rewards", keyed("k"));
    expect(again.body.rewards).toEqual([1, 0]);
    expect(world.hands.log.filter((line) => line.startsWith("executed"))).toHaveLength(1);
    expect(await totalsOf(world)).toMatchObject(graded);
  });

  it.each(["before", "after"] as const)("when its container dies %s any call to the table", async (when) => {
    const calls = await countCalls();
    expect(calls).toBeGreaterThan(8);
    const spoiled: unknown[] = [];
    for (let at = 1; at <= calls; at += 1) {
      const world = createRunsWorld();
      await world.container().register("r", 1);
      const { table } = dyingAt(world.table, at, when);
      void world.container({ table }).send("/v1/rewards", keyed("k"));
      await world.settle();
      await world.clock.pass(90_000);
      const other = world.container();
      expect((await other.call("/v1/rewards", keyed("k"))).body.rewards).toEqual([1, 0]);
      expect((await other.call("/v1/rewards", keyed("k"))).body.rewards).toEqual([1, 0]);
      const { batches, samples, verdicts } = await totalsOf(world);
      if (batches !== 1 || samples !== 2 || verdicts.passed !== 2) spoiled.push({ at, batches, samples });
      if (at % 4 > 0) continue;
      await world.sweepFor(25);
      const later = await totalsOf(world);
      if (later.batches !== 1 || later.samples !== 2) spoiled.push({ at, later });
    }
    expect(spoiled).toEqual([]);
  });

  it("in sums that equal what was graded, over a table that fails at random", async () => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const world = createRunsWorld({ seed, settings: { slots: 3 } });
      const random = seeded(seed);
      const table = failing(world.table, () => {
        const luck = random();
        return luck < 0.06 ? "unsent" : luck < 0.12 ? "answer_lost" : "no";
      });
      await world.container().register("r", 3);
      const containers = Array.from({ length: 3 }, () => world.container({ table }));
      let samples = 0;
      for (let batch = 0; batch < 20; batch += 1) {
        const sources = Array.from({ length: 1 + (batch % 4) }, (_, n) => (n % 2 === 0 ? "right" : "crash"));
        const container = containers[batch % 3] as (typeof containers)[0];
        for (let tries = 0; ; tries += 1) {
          const { status, body } = await container.call("/v1/rewards", keyed(`k${batch}`, sources));
          if (status === 200 && !body.rewards.includes(null)) break;
          if (status === 200) throw new Error(`${seed}: ${JSON.stringify(body)}`);
          if (tries > 20) throw new Error(`batch ${batch} of seed ${seed}: ${JSON.stringify(body)}`);
          await world.clock.pass(5_000);
        }
        samples += sources.length;
        if (batch % 5 === 4) await world.sweepFor(8, () => beat(world));
      }
      const totals = await totalsOf(world);
      expect({ seed, ...totals }).toMatchObject({ seed, batches: 20, samples, faults: 0 });
      await world.sweepFor(30, () => beat(world));
      expect(await totalsOf(world)).toMatchObject({ batches: 20, samples });
    }
  }, 120_000);

  async function countCalls() {
    const world = createRunsWorld();
    await world.container().register("r", 1);
    const { table, calls } = dyingAt(world.table, Number.POSITIVE_INFINITY, "after");
    await world.container({ table }).call("/v1/rewards", keyed("k"));
    return calls();
  }
});

describe("an answered batch whose container died before it was counted", () => {
  const batch = keyed("k", ["slow", "crash"]);

  /** Answered and not counted; `cost` says whether what it cost was. */
  async function dieUncounted(cost: "cost" | "nothing") {
    const world = createRunsWorld();
    const one = world.container({
      table: failing(world.table, (verb) => {
        if (verb === "note batch" || (cost === "nothing" && verb.startsWith("note"))) return "unsent";
        const isAnswered = world.table.log.some((write) => write.verb === "answer batch");
        if (cost === "cost" && verb === "answer batch") return "answer_lost";
        return cost === "cost" && isAnswered && verb === "get" ? "unsent" : "no";
      }),
    });
    await one.register("r", 1);
    await one.call("/v1/rewards", batch);
    await world.container().call("/v1/rewards", keyed("other"));
    return world;
  }

  const replay = (world: RunsWorld) => world.container().call("/v1/rewards", batch);

  it.each(["nothing", "cost"] as const)(
    "is counted once by who finds its answer long after, where %s of it was folded",
    async (cost) => {
      const world = await dieUncounted(cost);
      await world.clock.pass(25 * 60_000);
      await world.sweepOnce();
      const before = await totalsOf(world);
      expect(before.batches).toBe(1);
      const both = [1, 2].map(() => world.container().send("/v1/rewards", batch));
      await world.settle();
      for (const answer of await world.clock.run(Promise.all(both)))
        expect(await answer.json()).toMatchObject({ rewards: [1, 0] });
      const after = await totalsOf(world);
      expect(after).toMatchObject({ ...graded, batches: 2, samples: 4 });
      const workerSeconds = after.worker_seconds - before.worker_seconds;
      expect(workerSeconds).toBeCloseTo(cost === "cost" ? 0 : 0.5, 3);
      await replay(world);
      await world.clock.pass(25 * 60_000);
      await world.sweepOnce();
      await replay(world);
      expect((await totalsOf(world)).batches).toBe(2);
    },
  );

  it("is not added to a run that was finished since", async () => {
    const world = await dieUncounted("nothing");
    const finished = await world.container().call("/v1/runs/r", { method: "DELETE" });
    expect((await replay(world)).body.rewards).toEqual([1, 0]);
    const again = await world.container().call("/v1/runs/r", { method: "DELETE" });
    expect(again.body.totals).toEqual(finished.body.totals);
  });
});

describe("what an attempt cost is counted each time", () => {
  it("also when its result is another's", async () => {
    const world = createRunsWorld();
    let isOff = true;
    const table = failing(world.table, (verb) => (isOff && verb === "answer batch" ? "unsent" : "no"));
    const one = world.container({ table });
    await one.register("r", 1);
    const slow = ["slow 1", "slow 2"]; // a second of worker time
    await one.call("/v1/rewards", keyed("k", slow));
    isOff = false;
    await one.call("/v1/rewards", keyed("k", slow));
    expect(await totalsOf(world)).toMatchObject({ batches: 1, samples: 2, worker_seconds: 2 });
  });
});

describe("a batch that could not be counted", () => {
  it("is answered, and the fault is told", async () => {
    const world = createRunsWorld();
    await world.container().register("r", 1);
    const down = new Fault("store_unavailable", "no answer");
    const table = failing(world.table, (verb) => (verb === "note batch" ? down : "no"));
    const answer = await world.container({ table }).call("/v1/rewards", keyed("k"));
    expect(answer).toMatchObject({ status: 200, body: { rewards: [1, 0] } });
    expect(world.reported).toEqual([down]);
    await world.container().call("/v1/rewards", keyed("k")); // whoever asks for the answer again has it counted
    expect(await totalsOf(world)).toMatchObject(graded);
  });
});

async function beat(world: RunsWorld) {
  await world.container().send("/v1/runs/r/heartbeat", { method: "POST" });
}
