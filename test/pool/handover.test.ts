/** A worker that is given back goes to whoever has waited longest: at once here, in a moment elsewhere. */
import { describe, expect, it } from "vitest";
import type { PoolLease } from "../../functions/pool/held-lease.ts";
import { readPool, waitingBatches } from "../../functions/pool/pool-view.ts";
import { failing } from "./broken-table.ts";
import { type Container, createWorld, type World } from "./lease-world.ts";
import { present, startMs, testSettings } from "./test-pool.ts";

const settings = { slots: 1 };
const waitMs = 120_000;

/** A batch that waits; when it was served, and with what. */
function queue(world: World, handler: Container, batchId: string, runId = "run") {
  const gone = new AbortController();
  const batch = {
    gone,
    servedAtMs: null as number | null,
    lease: handler
      .acquire({ waitMs, signal: gone.signal, demand: { batchId, runId } })
      .then((lease: PoolLease | null) => {
        batch.servedAtMs = world.clock.nowMs();
        return lease;
      }),
  };
  return batch;
}

async function holding(latencyMs = 0, seed = 1) {
  const world = createWorld({ latencyMs, seed });
  const handler = world.container({ settings });
  const lease = present(await world.clock.run(handler.acquire({ demand: { batchId: "holds" } })));
  return { world, handler, lease, ...world };
}

describe("in the same container", () => {
  it("the worker changes hands in one write, at once, without a look at the table", async () => {
    const { world, clock, table, events, handler, lease } = await holding();
    const next = queue(world, handler, "next");
    await clock.pass(5_000);
    const before = { ...table.counts };
    const releasedAtMs = clock.nowMs();
    await clock.run(lease.release("healthy"));
    const got = present(await clock.run(next.lease));
    expect(next.servedAtMs).toBe(releasedAtMs);
    expect(table.counts).toEqual({ ...before, writes: before.writes + 1 });
    expect(got).toMatchObject({ workerId: lease.workerId, fencingToken: lease.fencingToken + 1 });
    expect(events.slice(-2)).toMatchObject([
      { kind: "released", how: "handed_over" },
      { kind: "leased", how: "handed_over" },
    ]);
    await clock.run(got.release("healthy"));
    expect(await world.states()).toEqual(["ready"]);
  });

  it("who has waited longest comes first, and those who have no worker before those who have", async () => {
    const world = createWorld();
    const { clock } = world;
    const handler = world.container({ settings: { slots: 2 } });
    const acquire = (batchId: string) => clock.run(handler.acquire({ demand: { batchId } }));
    let lease = present(await acquire("a"));
    present(await acquire("has-one"));
    const waits: ({ readonly batchId: string } & ReturnType<typeof queue>)[] = [];
    for (const batchId of ["has-one", "first", "second", "third"]) {
      waits.push({ batchId, ...queue(world, handler, batchId) });
      await clock.pass(10);
    }
    const served: string[] = [];
    for (const { batchId, lease: got } of waits) void got.then(() => served.push(batchId));
    await clock.pass(10_000);
    for (const batchId of ["first", "second", "third", "has-one"]) {
      await clock.run(lease.release("healthy"));
      expect(served.at(-1)).toBe(batchId);
      lease = present(await present(waits.find((wait) => wait.batchId === batchId)).lease);
    }
  });

  it.each([0, 5])(
    "of several that are given back at once a run gets no more than it may hold",
    async (latencyMs) => {
      const world = createWorld({ latencyMs });
      const { clock } = world;
      const handler = world.container({ settings: { slots: 3 } });
      const held: PoolLease[] = [];
      for (let worker = 0; worker < 3; worker += 1)
        held.push(present(await clock.run(handler.acquire({ demand: { runId: "a", batchId: "a" } }))));
      const got: (PoolLease | null)[] = [];
      for (let batch = 0; batch < 3; batch += 1) {
        const demand = { runId: "b", batchId: `b${batch}`, runWorkers: 1 };
        void handler.acquire({ waitMs, demand }).then((lease) => got.push(lease));
      }
      await clock.pass(5_000);
      await clock.run(Promise.all(held.map((lease) => lease.release("healthy"))));
      for (let served = 1; served <= 3; served += 1) {
        await clock.pass(5_000);
        expect(got).toHaveLength(served);
        await clock.run(present(got[served - 1]).release("healthy"));
      }
    },
  );

  it("of several that are given back at once each goes to another batch", async () => {
    const world = createWorld({ latencyMs: 5 });
    const { clock } = world;
    const handler = world.container({ settings: { slots: 2 } });
    const acquire = () => clock.run(handler.acquire({ demand: { batchId: "a" } }));
    const held = [present(await acquire()), present(await acquire())];
    const served: string[] = [];
    for (const batchId of ["b", "b", "c"]) {
      void handler.acquire({ waitMs, demand: { batchId } }).then(() => served.push(batchId));
      await clock.pass(10);
    }
    await clock.pass(5_000);
    await clock.run(Promise.all(held.map((lease) => lease.release("healthy"))));
    await clock.pass(50);
    expect(served.toSorted()).toEqual(["b", "c"]);
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    "one that goes away in that moment passes it on (seed %i)",
    async (seed) => {
      const { world, clock, handler, lease } = await holding(200, seed);
      const leaver = queue(world, handler, "leaver");
      const next = queue(world, handler, "next");
      await clock.pass(5_000);
      const released = lease.release("healthy");
      await clock.pass(20 * seed);
      leaver.gone.abort();
      await clock.run(Promise.all([released, leaver.lease]));
      const early = await leaver.lease; // it may have had it before it went
      if (early !== null) await clock.run(early.release("healthy"));
      const got = present(await clock.run(next.lease));
      await clock.run(got.release("healthy"));
      expect(await world.states()).toEqual(["ready"]);
    },
  );

  it("after a crowd that has gone a newcomer has a free worker at once", async () => {
    const world = createWorld();
    const { clock } = world;
    const handler = world.container({ settings });
    const batch = async (batchId: string) => {
      const lease = present(await handler.acquire({ waitMs, demand: { batchId } }));
      await clock.sleep(1_000);
      await lease.release("healthy");
    };
    await clock.run(Promise.all(Array.from({ length: 10 }, (_, n) => batch(`b${n}`))));
    const startedAtMs = clock.nowMs();
    await clock.run(batch("newcomer"));
    expect(clock.nowMs() - startedAtMs).toBe(1_000);
  });

  it.each([
    ["near the end of its life", 3_000_000, "healthy"],
    ["broken", 0, "broken"],
  ] as const)("a worker that is %s isn't handed over", async (_, afterMs, condition) => {
    const { world, clock, cloud, handler, lease } = await holding();
    await clock.pass(afterMs);
    const next = queue(world, handler, "next");
    await clock.pass(5_000);
    await clock.run(lease.release(condition));
    expect(present(await clock.run(next.lease)).workerId).not.toBe(lease.workerId);
    expect(cloud.killed).toEqual([lease.workerId]);
  });

  it("nor one whose sandbox would die under the next holder: it is free, and nobody's", async () => {
    const { world, clock, table, handler, lease } = await holding();
    const next = queue(world, handler, "next");
    await clock.pass(5_000);
    const dies = { name: "dies", update: "SET #t = :t", clauses: [], columns: { "#t": "ttl" } };
    await table.update({ pk: "pool", sk: "S#000" }, dies, { ":t": clock.nowMs() + 60_000 });
    await clock.run(lease.release("healthy"));
    expect(next.servedAtMs).toBeNull();
    expect(await world.states()).toEqual(["ready"]);
    next.gone.abort();
    await clock.run(next.lease);
  });

  it("a run that holds all that it may gets none of another run's, and one of its own", async () => {
    const world = createWorld();
    const { clock } = world;
    const handler = world.container({ settings: { slots: 2 }, demand: { runWorkers: 1 } });
    const acquire = (runId: string) =>
      clock.run(handler.acquire({ demand: { runId, batchId: `${runId}-holds` } }));
    const full = present(await acquire("full"));
    const other = present(await acquire("other"));
    const waiter = queue(world, handler, "waits", "full");
    await clock.pass(5_000);
    await clock.run(other.release("healthy"));
    await clock.pass(5_000);
    expect(waiter.servedAtMs).toBeNull();
    await clock.run(full.release("healthy"));
    expect(present(await clock.run(waiter.lease)).workerId).toBe(full.workerId);
  });

  it.each(["unsent", "answer_lost"] as const)("a write without an answer costs a minute: %s", async (how) => {
    const world = createWorld();
    const { clock, table } = world;
    let lost = 1;
    const shaky = failing(table, (verb) => (verb === "hand over" && lost-- > 0 ? how : "no"));
    const handler = world.container({ settings, table: shaky });
    const lease = present(await clock.run(handler.acquire({ demand: { batchId: "holds" } })));
    const next = queue(world, handler, "next");
    await clock.pass(5_000);
    await clock.run(lease.release("healthy"));
    const got = present(await clock.run(next.lease));
    expect(got.fencingToken).toBeGreaterThan(lease.fencingToken);
    expect(clock.nowMs() - startMs).toBeLessThan(5_000 + 70_000);
  });
});

describe("in another container", () => {
  it("it is kept for who has waited, though the holder's next batch comes at once", async () => {
    const { world, clock, handler, lease } = await holding();
    const waiter = queue(world, world.container({ settings }), "waits");
    await clock.pass(4_000);
    await clock.run(handler.isWanted({ batchId: "holds" })); // a look at the pool, as at a chunk's end
    const releasedAtMs = clock.nowMs();
    await clock.run(lease.release("healthy"));
    const eager = queue(world, handler, "eager");
    const got = present(await clock.run(waiter.lease));
    expect(clock.nowMs() - releasedAtMs).toBeLessThan(450);
    expect(eager.servedAtMs).toBeNull();
    await clock.pass(3_000);
    const secondAtMs = clock.nowMs();
    await clock.run(got.release("healthy"));
    await clock.run(eager.lease);
    expect(clock.nowMs() - secondAtMs).toBeLessThan(1_100);
  });

  it("whoever waits there isn't passed by those who wait where workers are given back", async () => {
    const world = createWorld();
    const { clock } = world;
    const busy = world.container({ settings });
    let isOver = false;
    const load = async (batchId: string) => {
      for (let round = 0; !isOver; round += 1) {
        const lease = await busy.acquire({ waitMs, demand: { batchId: `${batchId}${round}` } });
        await clock.sleep(1_000);
        await lease?.release("healthy");
      }
    };
    const loads = Promise.all(Array.from({ length: 5 }, (_, n) => load(`b${n}.`)));
    await clock.pass(20_000);
    const waits: number[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      const startedAtMs = clock.nowMs();
      const lease = present(
        await clock.run(world.container({ settings }).acquire({ waitMs, demand: { batchId: `o${turn}` } })),
      );
      waits.push(clock.nowMs() - startedAtMs);
      await clock.run(lease.release("healthy"));
    }
    isOver = true;
    await clock.run(loads);
    expect(Math.max(...waits)).toBeLessThan(12_000); // five others are before it, for a second each
  });

  it("one that died delays the next by a moment, for as long as it is believed", async () => {
    const { world, clock, handler, lease } = await holding();
    const dead = queue(world, world.container({ settings }), "dead");
    await clock.pass(4_000);
    dead.gone.abort();
    await clock.run(handler.isWanted({ batchId: "holds" }));
    await clock.run(lease.release("healthy"));
    const freeAtMs = clock.nowMs();
    const got = present(await clock.run(queue(world, handler, "next").lease));
    expect(clock.nowMs() - freeAtMs).toBeLessThan(1_700);
    await clock.pass(6_000);
    await clock.run(got.release("healthy"));
    const againAtMs = clock.nowMs();
    present(await clock.run(queue(world, handler, "after").lease));
    expect(clock.nowMs()).toBe(againAtMs);
  });

  it("a run has one sign of waiting, of its batch that has waited longest", async () => {
    const { world, clock, table } = await holding();
    const waiters: ReturnType<typeof queue>[] = [];
    for (const batchId of ["first", "second", "third"]) {
      waiters.push(queue(world, world.container({ settings }), batchId));
      await clock.pass(500);
    }
    await clock.pass(10_000);
    const context = { table, clock, newId: () => "x", settings: testSettings(settings) };
    const view = await readPool(context);
    expect(waitingBatches(context, view, clock.nowMs())).toMatchObject([{ sinceMs: startMs }]);
    const signs = table.log.filter(({ verb }) => verb === "sign of waiting").length;
    expect(signs).toBeLessThanOrEqual(4); // in ten seconds
    for (const { gone, lease } of waiters) {
      gone.abort();
      await clock.run(lease);
    }
  });
});

describe("a holder at a chunk's end", () => {
  const formerSign = {
    name: "sign of waiting",
    update: "SET #wu = :wu",
    clauses: [],
    columns: { "#wu": "wu" },
  };

  it.each([
    ["who waits with none wants one of two", "waits", 2, 2_000, true],
    ["whoever has come just now isn't looked at", "waits", 2, 1_000, false],
    ["of an only one only who has waited for longer than it is held", "waits", 1, 9_000, false],
    ["a batch that waits for more wants none", "holds", 2, 9_000, false],
  ] as const)("%s: in the same container, at once", async (_, batchId, workers, afterMs, isWanted) => {
    const world = createWorld();
    const { clock, table } = world;
    const handler = world.container({ settings: { slots: workers } });
    for (let worker = 0; worker < workers; worker += 1)
      present(await clock.run(handler.acquire({ demand: { batchId: "holds" } })));
    const waiter = queue(world, handler, batchId);
    await clock.pass(afterMs);
    const reads = table.counts.queries;
    const answer = clock.run(handler.isWanted({ batchId: "holds" }));
    if (isWanted) expect(table.counts.queries).toBe(reads);
    expect(await answer).toBe(isWanted);
    waiter.gone.abort();
    await clock.run(waiter.lease);
  });

  it("gives one of its workers to a batch that waits, however many of both there are", async () => {
    const world = createWorld();
    const { clock } = world;
    const handler = world.container({ settings: { slots: 4 } });
    const held: PoolLease[] = [];
    for (let worker = 0; worker < 4; worker += 1)
      held.push(present(await clock.run(handler.acquire({ demand: { batchId: "holds" } }))));
    const searches = [1, 2, 3].map(() => queue(world, handler, "waits"));
    await clock.pass(5_000);
    const asked = await clock.run(Promise.all(held.map(() => handler.isWanted({ batchId: "holds" }))));
    expect(asked).toEqual([true, false, false, false]);
    await clock.run(present(held[0]).release("healthy"));
    await clock.pass(5_000);
    expect(searches.filter(({ servedAtMs }) => servedAtMs !== null)).toHaveLength(1);
    expect(await clock.run(handler.isWanted({ batchId: "holds" }))).toBe(false);
    for (const { gone } of searches) gone.abort();
    await clock.run(Promise.all(searches.map(({ lease }) => lease)));
  });

  it("who was there before the holder of an only one gets it, here and elsewhere", async () => {
    for (const isHere of [true, false]) {
      const { world, clock, handler, lease } = await holding();
      const other = isHere ? handler : world.container({ settings });
      const jumper = queue(world, handler, "jumps");
      const waiter = queue(world, other, "waits");
      await clock.pass(5_000);
      await clock.run(lease.release("healthy"));
      const got = [jumper, waiter].filter(({ servedAtMs }) => servedAtMs !== null);
      expect(got).toEqual([jumper]);
      await clock.pass(4_000);
      expect(await clock.run(handler.isWanted({ batchId: "jumps" }))).toBe(true);
      await clock.run(present(await jumper.lease).release("healthy"));
      present(await clock.run(waiter.lease));
    }
  });

  it("a handler of the version before is read: another run waits, for one of several", async () => {
    for (const [workers, runTag, isWanted] of [
      [2, "another1", true],
      [1, "another1", false],
    ] as const) {
      const world = createWorld();
      const { clock, table } = world;
      const handler = world.container({ settings: { slots: workers } });
      for (let worker = 0; worker < workers; worker += 1)
        present(await clock.run(handler.acquire({ demand: { batchId: "holds" } })));
      await clock.pass(3_000);
      await table.update({ pk: "pool", sk: `W#${runTag}` }, formerSign, { ":wu": clock.nowMs() + 10_000 });
      expect(await clock.run(handler.isWanted({ batchId: "holds" }))).toBe(isWanted);
    }
  });

  it("looks at the pool every other second at most", async () => {
    const { clock, table, handler } = await holding();
    const before = table.counts.queries;
    for (let chunk = 0; chunk < 100; chunk += 1) {
      await clock.run(handler.isWanted({ batchId: "holds" }));
      await clock.pass(100);
    }
    expect(table.counts.queries - before).toBeLessThanOrEqual(5);
  });
});
