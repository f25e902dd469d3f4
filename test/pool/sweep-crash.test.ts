/** A pass that dies, wherever it dies: the next ones heal what it left. */
import { describe, expect, it } from "vitest";
import { beatRun } from "../../functions/pool/runs/heartbeat.ts";
import { getRun, getRunRow } from "../../functions/pool/runs/read.ts";
import { shortTag } from "../../functions/pool/slot-row.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { claimSlot } from "../../functions/pool/slots/claim.ts";
import { drainSlot } from "../../functions/pool/slots/drain.ts";
import { extendLease } from "../../functions/pool/slots/extend.ts";
import { finishRun } from "../../functions/pool/sweep/finish-run.ts";
import { sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { addThroughLane, noteAt } from "./run-samples.ts";
import { addWorker, createSweepWorld, dyingAt, type SweepWorld } from "./sweep-world.ts";
import { anna, ben, present } from "./test-pool.ts";

/** A pool in which there is something to do of each kind, and two holders at work. */
async function untidyWorld(): Promise<SweepWorld> {
  const world = createSweepWorld({ settings: { slots: 10 } });
  const ctx = world.context();
  await world.register("run", 4);
  await addWorker(world, 0, anna); // will be extended
  await addWorker(world, 1, ben); // its holder vanishes
  await addWorker(world, 2);
  const stuck = await addWorker(world, 3);
  present(await drainSlot(ctx, stuck)); // its drainer vanishes
  const lost = present(await claimSlot(ctx, 4, "run")); // its creator vanishes
  world.addSandbox({ slot: 4, generation: lost.generation, sandboxId: "landed-late" });
  const dead = await addWorker(world, 5); // its sandbox is gone
  world.cloud.alive.delete(dead.sandboxId ?? "");
  world.diesAtMs.delete(dead.sandboxId ?? "");
  await addWorker(world, 6);
  await addWorker(world, 7);
  world.addSandbox({ slot: 8, generation: 3, sandboxId: "orphan" });
  world.addSandbox({ sandboxId: "stranger" });
  await world.clock.pass(230_000); // all that can be over is over, and renewals are due
  present(await acquireSlot(ctx, 2, { runTag: shortTag("run"), batchTag: "b" })); // at work
  await beatRun(ctx, "run");
  world.cloud.killed.length = 0;
  return world;
}

/** Four workers, each known to its slot, none too many; and the ones at work untouched. */
function expectTidy(world: SweepWorld): void {
  const rows = world.slots().filter(({ state }) => state !== "empty");
  expect(rows.map(({ state }) => state).toSorted()).toEqual(["leased", "ready", "ready", "ready"]);
  expect(rows.map(({ sandboxId }) => sandboxId).toSorted()).toEqual([...world.cloud.alive.keys()].toSorted());
  expect(world.cloud.killed).not.toContain("w2");
}

/** How many calls to the outside a whole pass makes. */
async function countCalls(): Promise<number> {
  const world = await untidyWorld();
  const ctx = dyingAt(world.context(), Number.POSITIVE_INFINITY, "after");
  const report = await world.clock.run(sweepPool(ctx, { deadlineAtMs: world.clock.nowMs() + 50_000 }));
  expect(report.faultCount).toBe(0);
  expect(report.did).toMatchObject({
    orphansKilled: 2,
    creationsExpired: 1,
    leasesExpired: 2,
    drainsRedone: 1,
    deadDrained: 1,
    slotsEmptied: 5,
    renewed: 3,
    created: 1,
  });
  expectTidy(world);
  return ctx.calls();
}

describe("a pass of the sweep", () => {
  it("tidies everything up at once when it lives", async () => {
    expect(await countCalls()).toBeGreaterThan(25);
  });

  it.each(["before", "after"] as const)("may die %s any of its calls", async (when) => {
    const calls = await countCalls();
    for (let at = 1; at <= calls; at += 1) {
      const world = await untidyWorld();
      const deadlineAtMs = world.clock.nowMs() + 50_000;
      void sweepPool(dyingAt(world.context(), at, when), { deadlineAtMs });
      await world.clock.pass(60_000);
      await world.sweepFor(4, () => keepAtWork(world));
      expectTidy(world);
    }
    console.log(`passes that died ${when} a call: ${calls}, all healed`);
  });
});

describe("totals of a run", () => {
  /** A run with old batches in its ledger, some of them noted by a former version, and new ones. */
  async function busyWorld(): Promise<SweepWorld> {
    const world = createSweepWorld();
    const ctx = world.context();
    await world.register("run", 1);
    for (let batch = 0; batch < 10; batch += 1) {
      await noteAt(ctx, "run", `b${batch}`);
      await addThroughLane(ctx, "run", "~old", world.clock.nowMs());
      await world.clock.pass(150_000);
    }
    await beatRun(ctx, "run");
    return world;
  }
  const totals = async (world: SweepWorld) => {
    const { batches, samples, busyMs } = present(await getRun(world.context(), "run")).totals;
    return { batches, samples, busyMs };
  };
  const sum = { batches: 20, samples: 320, busyMs: 90_000 };

  it.each(["before", "after"] as const)("are the same when a pass dies %s any of its calls", async (when) => {
    const whole = await busyWorld();
    const counted = dyingAt(whole.context(), Number.POSITIVE_INFINITY, "after");
    await whole.clock.run(sweepPool(counted, { deadlineAtMs: whole.clock.nowMs() + 50_000 }));
    const folded = present(await getRunRow(whole.context(), "run")).totals.batches;
    expect(folded).toBeGreaterThan(10);
    for (let at = 1; at <= counted.calls(); at += 1) {
      const world = await busyWorld();
      void sweepPool(dyingAt(world.context(), at, when), { deadlineAtMs: world.clock.nowMs() + 50_000 });
      await world.clock.pass(60_000);
      expect({ at, ...(await totals(world)) }).toEqual({ at, ...sum });
      await world.clock.run(
        Promise.all(
          [1, 2].map(() => sweepPool(world.context(), { deadlineAtMs: world.clock.nowMs() + 50_000 })),
        ),
      );
      expect({ at, ...(await totals(world)) }).toEqual({ at, ...sum });
    }
  });
});

/** What a healthy trainer and a healthy holder do. */
async function keepAtWork(world: SweepWorld): Promise<void> {
  await beatRun(world.context(), "run");
  const held = world.slots().find(({ slot }) => slot === 2);
  if (held !== undefined) present(await extendLease(world.context(), held));
}

describe("finishing a run", () => {
  it("leaves nothing of an untidy pool, whoever holds what", async () => {
    expect(await countFinishCalls()).toBeGreaterThan(25);
  });

  it.each(["before", "after"] as const)(
    "may die %s any of its calls: asked again, it is done",
    async (when) => {
      const calls = await countFinishCalls();
      for (let at = 1; at <= calls; at += 1) {
        const world = await untidyWorld();
        finishRun(dyingAt(world.context(), at, when), "run").catch(() => {});
        await world.clock.pass(5_000);
        const again = await world.clock.run(finishRun(world.context(), "run"));
        expect(again).toMatchObject({ kind: "finished", remainingSandboxes: [] });
        expect([...world.cloud.alive.keys()]).toEqual([]);
      }
    },
  );

  it.each(["before", "after"] as const)(
    "may die %s any of its calls: the sweep does the rest in 60 s",
    async (when) => {
      const calls = await countFinishCalls();
      for (let at = 4; at <= calls; at += 1) {
        const world = await untidyWorld();
        finishRun(dyingAt(world.context(), at, when), "run").catch(() => {});
        await world.clock.pass(55_000); // the cron comes every minute
        await world.sweep();
        const isFinished = world.table.rows().some(({ sk, fin }) => sk === "R#run" && fin !== undefined);
        if (isFinished) expect([...world.cloud.alive.keys()]).toEqual([]);
      }
    },
  );
});

async function countFinishCalls(): Promise<number> {
  const world = await untidyWorld();
  const ctx = dyingAt(world.context(), Number.POSITIVE_INFINITY, "after");
  const finish = await world.clock.run(finishRun(ctx, "run"));
  expect(finish).toMatchObject({ kind: "finished", remainingSandboxes: [], faults: [] });
  expect(world.cloud.alive.size).toBe(0);
  return ctx.calls();
}
