/** Workers come and go by the sweep: created, replaced, drained. */
import { afterEach, describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { beatRun } from "../../functions/pool/runs/heartbeat.ts";
import { keepRunAlive } from "../../functions/pool/runs/keep-alive.ts";
import { listRuns } from "../../functions/pool/runs/read.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { startRun } from "../../functions/pool/sweep/start-run.ts";
import { sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { addWorker, createSweepWorld, type SweepWorld, type SweepWorldOptions } from "./sweep-world.ts";
import { anna, present } from "./test-pool.ts";

const worlds: SweepWorld[] = [];

function newWorld(options: SweepWorldOptions = {}): SweepWorld {
  const world = createSweepWorld(options);
  worlds.push(world);
  return world;
}

// Whatever a test did: never more sandboxes than slots, and nobody died for lack of a renewal.
afterEach(() => {
  for (const { cloud, settings, starved } of worlds.splice(0)) {
    expect(cloud.mostAlive()).toBeLessThanOrEqual(settings.slots);
    expect(starved).toEqual([]);
  }
});

const servingIds = (world: SweepWorld) =>
  world
    .slots()
    .flatMap(({ state, sandboxId }) => (state === "ready" || state === "leased" ? [sandboxId] : []));

describe("creation", () => {
  it("fills the pool up to the target in one pass, one creation an interval", async () => {
    const world = newWorld({ createMs: 2_000 });
    await world.register("one", 3);
    await world.register("other", 5);
    const report = await world.sweep();
    expect(report).toMatchObject({ target: 8, liveRuns: 2, did: { created: 8 } });
    const times = world.cloud.createdAtMs;
    const gaps = times.slice(1).map((atMs, index) => atMs - (times[index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_000);
    expect(report.wallMs).toBeLessThan(20_000);
    const tags = world.slots().map(({ createdForRun }) => createdForRun);
    expect(new Set(tags).size).toBe(2);
    expect([3, 5]).toContain(tags.filter((tag) => tag === tags[0]).length);
  });

  it("never goes beyond the slots, whatever runs want", async () => {
    const world = newWorld({ settings: { slots: 4 } });
    await world.register("one", 4);
    await world.register("other", 4);
    expect((await world.sweep()).did.created).toBe(4);
  });

  it("doesn't go beyond the target with three passes and three handlers at once", async () => {
    const world = newWorld({ latencyMs: 80, createMs: 1_500 });
    await world.register("run", 5);
    const deadlineAtMs = world.clock.nowMs() + 50_000;
    const passes = [1, 2, 3].map(() => sweepPool(world.context(), { deadlineAtMs }));
    const leases = await world.clock.run(Promise.all([1, 2, 3].map(() => world.lease())));
    await world.clock.run(Promise.all(passes));
    await world.clock.run(Promise.all(leases.map((lease) => lease.release("healthy"))));
    await world.sweep();
    expect(servingIds(world)).toHaveLength(5);
    expect(world.cloud.mostAlive()).toBeLessThanOrEqual(6);
  });

  it("stops for this pass when the provider refuses, and goes on in the next", async () => {
    const world = newWorld();
    await world.register("run", 2);
    world.cloud.script.push("refused", "refused", "refused");
    const report = await world.sweep();
    expect(report.did.created).toBe(0);
    expect(report.faults.map(({ action }) => action)).toEqual(["create", "create", "create"]);
    expect((await world.sweep()).did.created).toBe(2);
  });

  it("does not try again what no retry can help", async () => {
    const world = newWorld();
    await world.register("run", 2);
    world.cloud.script.push("misconfigured");
    expect((await world.sweep()).faults).toEqual([
      { action: "create", code: "misconfigured", detail: "bad key" },
    ]);
    expect(world.cloud.createdAtMs).toHaveLength(1);
  });

  it("leaves a creation without an answer alone until its time is over, then lists, kills and frees", async () => {
    const world = newWorld();
    await world.register("run", 1);
    world.cloud.script.push("lands_late"); // 50 s after it was given up
    await world.sweep();
    expect(world.states()).toEqual(["creating"]);
    await world.clock.pass(60_000);
    expect([...world.cloud.alive.values()]).toMatchObject([{ slot: expect.any(Number), generation: 1 }]);
    const beat = () => beatRun(world.context(), "run");
    await world.sweepFor(2, beat);
    expect(world.states()).toContain("ready");
    expect(servingIds(world)).toEqual([...world.cloud.alive.keys()]);
  });
});

describe("starting a run", () => {
  it("makes one run and its workers, no more, of sixteen ranks that say so at once", async () => {
    const world = newWorld({ latencyMs: 40, createMs: 1_500 });
    const wish = { name: "run", workers: 5, metadata: {} };
    const ranks = Array.from({ length: 16 }, () => startRun(world.context(), "run", wish));
    const answers = await world.clock.run(Promise.all(ranks));
    expect(answers.filter((answer) => answer.kind === "started" && answer.isNew)).toHaveLength(1);
    for (const answer of answers)
      expect(answer).toMatchObject({ kind: "started", workersReady: 5, faults: [] });
    expect(await world.clock.run(listRuns(world.context()))).toMatchObject([{ runId: "run", workers: 5 }]);
    expect(world.cloud.mostAlive()).toBe(5);
  });

  it("answers after 20 s with the workers there are, and the sweep creates the rest", async () => {
    const world = newWorld({ createMs: 1_500 });
    const wish = { name: "run", workers: 20, metadata: {} };
    const beganAtMs = world.clock.nowMs();
    const answer = await world.clock.run(startRun(world.context(), "run", wish));
    expect(world.clock.nowMs() - beganAtMs).toBeLessThanOrEqual(20_000);
    if (answer.kind !== "started") throw new Error("not started");
    expect(answer.workersReady).toBeGreaterThan(8);
    expect(answer.workersReady).toBeLessThan(20);
    expect((await world.sweep()).did.created).toBe(20 - answer.workersReady);
  });

  it("says what kept workers from coming", async () => {
    const world = newWorld();
    world.cloud.script.push("misconfigured");
    const wish = { name: "run", workers: 2, metadata: {} };
    expect(await world.clock.run(startRun(world.context(), "run", wish))).toMatchObject({
      workersReady: 0,
      faults: [{ code: "misconfigured" }],
    });
  });
});

describe("a batch that outlives its run", () => {
  it("keeps it alive for as long as it lasts", async () => {
    const world = newWorld();
    await world.register("run", 2);
    const over = new AbortController();
    const kept = keepRunAlive(world.context(), "run", over.signal, (fault) => {
      throw fault;
    });
    await world.sweepFor(14);
    expect(servingIds(world)).toHaveLength(2);
    over.abort();
    await world.clock.run(kept);
    await world.sweepFor(7);
    expect(servingIds(world)).toEqual([]);
  });
});

describe("a pass that is told to stop", () => {
  it("ends at once, and a later one goes on", async () => {
    const world = newWorld({ createMs: 1_500 });
    await world.register("run", 10);
    const stop = new AbortController();
    const options = { deadlineAtMs: world.clock.nowMs() + 50_000, signal: stop.signal };
    const pass = sweepPool(world.context(), options);
    await world.clock.pass(3_000);
    stop.abort();
    const report = await world.clock.run(pass);
    expect(report.wallMs).toBe(3_000);
    expect(report.did.created).toBeLessThan(4);
    await world.clock.pass(2_000);
    await world.sweep();
    expect(servingIds(world)).toHaveLength(10);
  });
});

describe("a publication whose answer was lost", () => {
  it("is no reason to kill a worker that another has leased by then", async () => {
    const world = newWorld();
    await world.register("run", 1);
    const table: Table = {
      ...world.table,
      async update(key, expression, values) {
        if (expression.name !== "publish ready") return world.table.update(key, expression, values);
        await world.table.update(key, expression, values);
        present(await acquireSlot(world.context(), Number(key.sk.slice(2)), anna));
        return { kind: "refused", retried: true };
      },
    };
    await world.sweep({ table });
    expect(world.cloud.killed).toEqual([]);
    expect(world.states()).toEqual(["leased"]);
  });
});

describe("rotation", () => {
  it("replaces every worker before the plan's life ends, the replacement first, and never beyond the life", async () => {
    const world = newWorld({ createMs: 1_500 });
    await world.register("run", 3);
    const bornAtMs = new Map<string, number>();
    let fewest = 3;
    for (let minute = 0; minute < 180; minute += 1) {
      await world.sweepFor(1, () => beatRun(world.context(), "run"));
      for (const { sandboxId, startedAtMs } of world.cloud.alive.values())
        bornAtMs.set(sandboxId, startedAtMs);
      if (minute > 0) fewest = Math.min(fewest, servingIds(world).length);
      for (const [id, diesAtMs] of world.diesAtMs) {
        expect(diesAtMs - (bornAtMs.get(id) ?? 0)).toBeLessThanOrEqual(world.settings.lifeMs);
      }
    }
    expect(fewest).toBe(3);
    expect(bornAtMs.size).toBeGreaterThanOrEqual(12); // 3 hours on a plan of one, 3 at a time
    expect(bornAtMs.size).toBeLessThanOrEqual(21);
    expect(world.cloud.mostAlive()).toBeLessThanOrEqual(5);
  });

  it("goes on in a full pool too, one after the other", async () => {
    const world = newWorld({ settings: { slots: 2 }, createMs: 1_500 });
    await world.register("run", 2);
    const reports = await world.sweepFor(120, () => beatRun(world.context(), "run"));
    expect(reports.reduce((sum, { did }) => sum + did.created, 0)).toBeGreaterThanOrEqual(6);
    expect(reports.filter(({ did }) => did.wornDrained > 1)).toEqual([]);
    expect(servingIds(world)).toHaveLength(2);
  });
});

describe("draining", () => {
  it("takes workers of another version out, and makes new ones", async () => {
    const world = newWorld();
    await world.register("run", 2);
    await world.sweep();
    const old = servingIds(world);
    const settings = { ...world.settings, supervisorVersion: "v2" };
    const report = await world.sweep({ settings });
    expect(report.did).toMatchObject({ versionDrained: 2, slotsEmptied: 2, created: 2 });
    expect(world.cloud.killed.toSorted()).toEqual(old.toSorted());
    expect(world.slots().filter(({ state }) => state === "ready")).toMatchObject([
      { supervisorVersion: "v2" },
      { supervisorVersion: "v2" },
    ]);
  });

  it("takes the longest idle ones when the target falls, and none that is held", async () => {
    const world = newWorld();
    await world.register("run", 5);
    for (let slot = 0; slot < 5; slot += 1) {
      await addWorker(world, slot, slot < 2 ? anna : null);
      await world.clock.pass(1_000);
    }
    await world.register("run", 3);
    const report = await world.sweep();
    expect(report.did.surplusDrained).toBe(2);
    expect(world.cloud.killed.toSorted()).toEqual(["w2", "w3"]);
  });

  it("drains what lies above a pool that was made smaller", async () => {
    const world = newWorld();
    await world.register("run", 5);
    for (let slot = 0; slot < 5; slot += 1) await addWorker(world, slot);
    await world.sweep({ settings: { ...world.settings, slots: 2 } });
    expect(servingIds(world).toSorted()).toEqual(["w0", "w1"]);
  });

  it("leaves a slot whose sandbox would not die, and does it again", async () => {
    const world = newWorld();
    await addWorker(world, 0);
    world.cloud.kills = "failed";
    const report = await world.sweep();
    expect(report.faults).toMatchObject([{ action: "kill", code: "sandbox_unavailable" }]);
    expect(world.states()).toEqual(["draining"]);
    await world.clock.pass(60_000);
    world.cloud.kills = "done";
    await world.sweep(); // kills; the slot is still the first one's to empty
    expect(world.cloud.alive.size).toBe(0);
    await world.clock.pass(60_000);
    await world.sweep();
    expect(world.states()).toEqual(["empty"]);
  });

  it("gives up a free worker whose sandbox is gone, and replaces it", async () => {
    const world = newWorld();
    await world.register("run", 1);
    const { sandboxId = "" } = await addWorker(world, 0);
    await world.clock.pass(61_000);
    world.cloud.alive.delete(sandboxId);
    world.diesAtMs.delete(sandboxId);
    expect((await world.sweep()).did).toMatchObject({ deadDrained: 1, slotsEmptied: 1, created: 1 });
    expect(servingIds(world)).toHaveLength(1);
  });
});

describe("a pass without time", () => {
  it("starts nothing after its deadline, and says how much it left", async () => {
    const world = newWorld();
    await world.register("run", 3);
    for (let slot = 0; slot < 5; slot += 1) await addWorker(world, slot);
    world.addSandbox({ sandboxId: "orphan" });
    const report = await world.sweep({}, 0);
    expect(report.did).toMatchObject({ postponed: 3, orphansKilled: 0, surplusDrained: 0, created: 0 });
    expect(world.cloud.killed).toEqual([]);
    world.cloud.alive.delete("orphan");
  });
});
