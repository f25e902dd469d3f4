import { describe, expect, it, vi } from "vitest";
import { Fault } from "../../functions/rewards/faults.ts";
import { failing } from "./broken-table.ts";
import { createWorld } from "./lease-world.ts";
import { present, startMs } from "./test-pool.ts";

vi.setConfig({ testTimeout: 60_000 }); // 200 waiters, perhaps on a busy machine

describe("what a lease costs", () => {
  it("is two writes and no read, for a container that takes its last slot again", async () => {
    const { clock, table, container } = createWorld();
    const handler = container();
    await clock.run((async () => (await handler.acquire())?.release("healthy"))());
    const before = { ...table.counts };
    const leases = 50;
    for (let lease = 0; lease < leases; lease += 1) {
      await clock.run((async () => present(await handler.acquire()).release("healthy"))());
    }
    const writes = (table.counts.writes - before.writes) / leases;
    console.log(`writes a leased worker with affinity: ${writes}`);
    expect(writes).toBeLessThanOrEqual(2);
    expect(table.counts.gets + table.counts.queries).toBe(before.gets + before.queries);
  });

  it("stays at two writes for a batch that holds several workers", async () => {
    const { clock, table, container } = createWorld();
    const handler = container();
    const both = async () => {
      const leases = [present(await handler.acquire()), present(await handler.acquire())];
      await Promise.all(leases.map((lease) => lease.release("healthy")));
    };
    await clock.run(both());
    const before = table.counts.writes;
    await clock.run(both());
    expect(table.counts.writes - before).toBe(4);
  });

  it("adds one write for each 20 seconds that it is held", async () => {
    const { clock, table, container } = createWorld();
    present(await clock.run(container().acquire()));
    const before = table.counts.writes;
    await clock.pass(200_000);
    expect(table.counts.writes - before).toBe(10);
  });
});

describe("where workers come from", () => {
  it("creates one when there is none, and the next container finds it free", async () => {
    const { clock, events, container } = createWorld();
    const lease = present(await clock.run(container().acquire()));
    expect(lease).toMatchObject({ created: true, fencingToken: 1, slot: expect.any(Number) });
    await lease.release("healthy");
    const again = present(await clock.run(container().acquire()));
    expect(again).toMatchObject({
      created: false,
      fencingToken: 2,
      slot: lease.slot,
      workerId: lease.workerId,
    });
    expect(events.filter((event) => event.kind === "leased").map((event) => event.how)).toEqual([
      "created",
      "free",
    ]);
  });

  it("creates at the plan's pace and never more than slots, however many wait", async () => {
    const { clock, cloud, table, container } = createWorld({ createMs: 1_500, latencyMs: 8 });
    let served = 0;
    const batch = async () => {
      const lease = await container({ settings: { slots: 5 } }).acquire({ waitMs: 300_000 });
      if (lease === null) return;
      await clock.sleep(4_000);
      await lease.release("healthy");
      served += 1;
    };
    await clock.run(Promise.all(Array.from({ length: 200 }, batch)));
    expect(served).toBe(200);
    expect(cloud.mostAlive()).toBe(5);
    const admitted = table.log.filter(({ verb }) => verb === "admit creation").map(({ after }) => after.next);
    for (const [index, next] of admitted.entries()) {
      if (index > 0) expect(Number(next) - Number(admitted[index - 1])).toBeGreaterThanOrEqual(1_000);
    }
    expect(cloud.createdAtMs).toHaveLength(5);
  });

  it("never hands a worker to two at once", async () => {
    const { clock, container } = createWorld({ createMs: 500, latencyMs: 20, seed: 7 });
    const held = new Set<string>();
    const tokens = new Set<string>();
    const batch = async (handler: ReturnType<typeof container>, rounds: number) => {
      for (let round = 0; round < rounds; round += 1) {
        const lease = present(await handler.acquire({ waitMs: 600_000 }));
        expect(held.has(lease.workerId)).toBe(false);
        expect(tokens.has(`${lease.slot}/${lease.fencingToken}`)).toBe(false);
        held.add(lease.workerId);
        tokens.add(`${lease.slot}/${lease.fencingToken}`);
        await clock.sleep(700);
        held.delete(lease.workerId);
        await lease.release(round % 5 === 4 ? "broken" : "healthy");
      }
    };
    const handlers = Array.from({ length: 20 }, () => container({ settings: { slots: 4 } }));
    await clock.run(Promise.all(handlers.map((handler) => batch(handler, 6))));
    expect(tokens.size).toBe(120);
  });

  it.each([
    ["without a limit of the run's", {}],
    ["though it counts for the run's one worker", { runWorkers: 1 }],
  ])("takes the worker of a holder that went silent, with a higher fence, %s", async (_name, demand) => {
    const { clock, events, table, container } = createWorld();
    const settings = { slots: 1 };
    const silent = failing(table, (verb) => (verb === "extend" ? "unsent" : "no"));
    const dead = present(await clock.run(container({ settings, table: silent }).acquire()));
    const waiting = container({ settings }).acquire({ waitMs: 120_000, demand });
    const lease = present(await clock.run(waiting));
    expect(lease.workerId).toBe(dead.workerId);
    expect(lease.fencingToken).toBe(dead.fencingToken + 1);
    expect(clock.nowMs() - startMs).toBeGreaterThan(65_000);
    expect(clock.nowMs() - startMs).toBeLessThan(67_000);
    expect(events.at(-1)).toMatchObject({ kind: "leased", how: "taken_over" });
  });

  it("does not use a worker of another supervisor version", async () => {
    const { clock, cloud, container } = createWorld();
    const old = container({ settings: { slots: 2, supervisorVersion: "v0" } });
    await present(await clock.run(old.acquire())).release("healthy");
    const lease = present(await clock.run(container({ settings: { slots: 2 } }).acquire()));
    expect(lease.created).toBe(true);
    expect(cloud.alive.size).toBe(2);
  });

  it.each([
    ["a run holds no more than its own workers", { runWorkers: 1 }, { runWorkers: 1 }, null],
    ["another run is not held back by that", { runWorkers: 1 }, { runWorkers: 1, runId: "other" }, "lease"],
    ["the pool grows no further than its target", {}, { targetWorkers: 1 }, null],
    ["the pool grows up to its target", {}, { targetWorkers: 2 }, "lease"],
  ])("%s", async (_, first, second, outcome) => {
    const { clock, container } = createWorld();
    present(await clock.run(container({ demand: first }).acquire()));
    const answer = await clock.run(container({ demand: second }).acquire({ waitMs: 5_000 }));
    expect(answer === null ? null : "lease").toBe(outcome);
  });
});

describe("a worker of another version", () => {
  it.each([
    ["held", "v1", "v2"],
    ["held", "v2", "v1"],
    ["free", "v1", "v2"],
    ["free", "v2", "v1"],
  ])("that is %s (%s) is none of the target's for a batch of %s", async (how, there, own) => {
    const { clock, container } = createWorld();
    const acquire = async (supervisorVersion: string) => {
      const handler = container({ demand: { targetWorkers: 1 }, settings: { supervisorVersion } });
      return present(await clock.run(handler.acquire({ waitMs: 30_000 })));
    };
    const lease = await acquire(there);
    if (how === "free") await lease.release("healthy");
    expect((await acquire(own)).created).toBe(true);
  });
});

describe("waiting", () => {
  it("ends in null at the deadline, when all workers are busy", async () => {
    const { clock, container } = createWorld();
    const settings = { slots: 1 };
    present(await clock.run(container({ settings }).acquire()));
    expect(await clock.run(container({ settings }).acquire({ waitMs: 30_000 }))).toBeNull();
    expect(clock.nowMs()).toBe(startMs + 30_000);
  });

  it("ends in null at once when nobody waits any more", async () => {
    const { clock, container } = createWorld();
    const settings = { slots: 1 };
    present(await clock.run(container({ settings }).acquire()));
    const gone = new AbortController();
    const waiting = container({ settings }).acquire({ waitMs: 30_000, signal: gone.signal });
    await clock.pass(1_000);
    gone.abort();
    expect(await clock.run(waiting)).toBeNull();
    expect(clock.nowMs()).toBeLessThan(startMs + 2_000);
  });

  it("gives back at once what it got when nobody waits any more", async () => {
    const { clock, container, states } = createWorld({ latencyMs: 200 });
    const handler = container({ settings: { slots: 1 } });
    await clock.run((async () => present(await handler.acquire()).release("healthy"))());
    const gone = new AbortController();
    const waiting = handler.acquire({ signal: gone.signal });
    gone.abort(); // the write is on its way
    expect(await clock.run(waiting)).toBeNull();
    expect(await states()).toEqual(["ready"]);
  });

  it("leaves no timer behind", async () => {
    const { clock, container } = createWorld({ createMs: 2_000 });
    const lease = present(await clock.run(container().acquire()));
    await lease.release("healthy");
    await clock.pass(0);
    expect(clock.sleepers()).toBe(0);
  });
});

describe("a creation that nobody waits for any more", () => {
  it.each([
    ["the batch was done", 1_000],
    ["the worker was being published in that very moment", 3_000],
  ])("goes on, and its worker is free for others: %s", async (_, abortAtMs) => {
    const { clock, cloud, table, container, states } = createWorld({ createMs: 3_000 });
    const handler = container();
    const gone = new AbortController();
    const waiting = handler.acquire({ signal: gone.signal });
    void clock.sleep(abortAtMs).then(() => gone.abort());
    expect(await clock.run(waiting)).toBeNull();
    await clock.run(handler.settled());
    expect(await states()).toEqual(["ready"]);
    expect(table.log.filter(({ verb }) => verb === "admit creation")).toHaveLength(1);
    expect(present(await clock.run(container().acquire())).created).toBe(false);
    expect(cloud.alive.size).toBe(1);
  });

  it("is given up together with its slot when it took longer than its claim", async () => {
    const { clock, cloud, table, container, states } = createWorld({ createMs: 200_000 });
    const slow = container({ settings: { slots: 1 } }).acquire({ waitMs: 400_000 });
    await clock.pass(1_000);
    // Somebody takes the slot back, as the sweep does after the claim's time.
    const [row] = table.rows().filter(({ sk }) => sk === "S#000");
    const steal = { name: "steal", update: "ADD #f :one", clauses: [], columns: { "#f": "f" } };
    await clock.run(table.update({ pk: "pool", sk: "S#000" }, steal, { ":one": 1 }));
    expect(row?.st).toBe("creating");
    expect(await clock.run(slow)).toBeNull();
    expect(cloud.alive.size).toBe(0);
    expect(await states()).toEqual(["creating"]);
  });
});

describe("creations that fail", () => {
  it.each([
    ["surely made nothing: the slot is free at once", "refused", ["empty"], 0],
    ["made a sandbox of no use: it is killed", "unproved", ["empty"], 1],
    ["may have made one: the slot waits for the sweep", "ambiguous", ["creating"], 0],
  ] as const)("%s", async (_, outcome, expected, kills) => {
    const { clock, cloud, container, states } = createWorld();
    cloud.script.push(outcome);
    const waiting = container({ settings: { slots: 1 } }).acquire({ waitMs: 1 });
    await expect(clock.run(waiting)).rejects.toMatchObject({ name: "Fault" });
    expect(await states()).toEqual(expected);
    expect(cloud.killed).toHaveLength(kills);
    expect(cloud.alive.size).toBe(0);
  });

  it("are tried again, later, while the batch waits", async () => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push("refused", "refused", "unproved");
    expect(await clock.run(container().acquire())).toMatchObject({ created: true });
    expect(cloud.createdAtMs).toHaveLength(4);
  });

  it("keep the slot of a sandbox that could not be killed", async () => {
    const { clock, cloud, container, states } = createWorld();
    cloud.script.push("unproved");
    cloud.kills = "failed";
    const waiting = container({ settings: { slots: 1 } }).acquire({ waitMs: 1 });
    await expect(clock.run(waiting)).rejects.toMatchObject({ code: "isolation_failed" });
    expect(await states()).toEqual(["creating"]);
  });

  it("end the wait at once when trying again is of no use", async () => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push("misconfigured");
    await expect(clock.run(container().acquire())).rejects.toMatchObject({ code: "misconfigured" });
    expect(clock.nowMs()).toBe(startMs);
  });

  it("end the wait when the isolation keeps failing", async () => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push("unproved", "unproved", "unproved", "unproved");
    await expect(clock.run(container().acquire())).rejects.toMatchObject({ code: "isolation_failed" });
    expect(cloud.createdAtMs).toHaveLength(3);
  });

  it("are what the deadline reports, to other batches of the container too", async () => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push(...Array.from({ length: 99 }, () => "refused" as const));
    const handler = container();
    const waits = [handler.acquire({ waitMs: 20_000 }), handler.acquire({ waitMs: 20_000 })];
    const ends = await clock.run(Promise.allSettled(waits));
    for (const end of ends) {
      expect(end).toMatchObject({ status: "rejected", reason: { code: "sandbox_unavailable" } });
    }
    expect(cloud.createdAtMs.length).toBeLessThan(15);
  });

  it("are no answer to a batch that only found the pool full", async () => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push("refused");
    const settings = { slots: 1 };
    const waiting = container({ settings: { ...settings, pollMs: 8_000 } }).acquire({ waitMs: 40_000 });
    await clock.pass(100);
    present(await clock.run(container({ settings }).acquire({ waitMs: 10_000 })));
    expect(await clock.run(waiting)).toBeNull();
  });
});

describe("a store that does not answer", () => {
  it("is waited for within the deadline", async () => {
    const { clock, table, container } = createWorld();
    let failures = 3;
    const shaky = failing(table, () => (failures-- > 0 ? "unsent" : "no"));
    expect(await clock.run(container({ table: shaky }).acquire())).toMatchObject({ created: true });
  });

  it("may be so in the middle of a creation: another one is begun", async () => {
    const { clock, cloud, table, container } = createWorld();
    let failures = 2;
    const shaky = failing(table, (verb) => (verb === "claim" && failures-- > 0 ? "unsent" : "no"));
    expect(await clock.run(container({ table: shaky }).acquire())).toMatchObject({ created: true });
    expect(cloud.createdAtMs).toHaveLength(1);
  });

  it("is the fault that the deadline reports", async () => {
    const { clock, table, container } = createWorld();
    const dead = failing(table, () => "unsent");
    await expect(clock.run(container({ table: dead }).acquire())).rejects.toMatchObject({
      code: "store_unavailable",
    });
    expect(clock.nowMs()).toBe(startMs + 60_000);
  });

  it("is forgotten once it answers again", async () => {
    const { clock, table, container } = createWorld();
    const settings = { slots: 1 };
    present(await clock.run(container({ settings }).acquire()));
    let failures = 2;
    const shaky = failing(table, () => (failures-- > 0 ? "unsent" : "no"));
    expect(await clock.run(container({ settings, table: shaky }).acquire({ waitMs: 30_000 }))).toBeNull();
  });

  it("ends the wait at once when it is misconfigured", async () => {
    const { clock, table, container } = createWorld();
    const absent = failing(table, () => new Fault("misconfigured", "no such table"));
    await expect(clock.run(container({ table: absent }).acquire())).rejects.toMatchObject({
      code: "misconfigured",
    });
  });

  it("costs a worker's minute, not the worker, when it swallows the answer of an acquisition", async () => {
    const { clock, cloud, table, container } = createWorld();
    const settings = { slots: 1 };
    await present(await clock.run(container({ settings }).acquire())).release("healthy");
    let lost = 1;
    const lossy = failing(table, (verb) => (verb === "acquire" && lost-- > 0 ? "answer_lost" : "no"));
    const lease = present(await clock.run(container({ settings, table: lossy }).acquire({ waitMs: 90_000 })));
    expect(lease.created).toBe(false);
    expect(cloud.alive.size).toBe(1);
  });
});
