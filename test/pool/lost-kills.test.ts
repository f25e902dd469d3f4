/** Kills whose answers get lost: what is gone is free at once, and what may still come is not forgotten. */
import { afterEach, describe, expect, it } from "vitest";
import { beginBatch } from "../../functions/pool/batches/begin-batch.ts";
import { cancelBatch } from "../../functions/pool/batches/cancel-batch.ts";
import type { SandboxChange, Sandboxes } from "../../functions/pool/ports.ts";
import { shortTag } from "../../functions/pool/slot-row.ts";
import { claimSlot } from "../../functions/pool/slots/claim.ts";
import { abandonCreation } from "../../functions/pool/slots/drain.ts";
import { finishRun } from "../../functions/pool/sweep/finish-run.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { addWorker, createSweepWorld, type SweepWorld } from "./sweep-world.ts";
import { present } from "./test-pool.ts";

const worlds: SweepWorld[] = [];
function newWorld(slots: number): SweepWorld {
  const world = createSweepWorld({ settings: { slots } });
  worlds.push(world);
  return world;
}
afterEach(() => {
  for (const { cloud, settings } of worlds.splice(0))
    expect(cloud.mostAlive()).toBeLessThanOrEqual(settings.slots);
});

const noAnswer: SandboxChange = {
  kind: "failed",
  reason: "ambiguous",
  fault: new Fault("sandbox_unavailable", "E2B did not answer"),
};

/** A provider whose kills are not answered while `isLost` says so; they are done all the same, or not. */
function losingKills(world: SweepWorld, isLost: () => boolean, isDone = true): Sandboxes {
  const { sandboxes } = world.context();
  return {
    ...sandboxes,
    async kill(sandboxId) {
      if (!isLost()) return sandboxes.kill(sandboxId);
      if (isDone) await sandboxes.kill(sandboxId);
      return noAnswer;
    },
  };
}

/** The first kill of each sandbox. */
function firstOfEach(world: SweepWorld): Sandboxes {
  const { sandboxes } = world.context();
  const seen = new Set<string>();
  return {
    ...sandboxes,
    async kill(sandboxId) {
      const killed = await sandboxes.kill(sandboxId);
      const isFirst = !seen.has(sandboxId);
      seen.add(sandboxId);
      return isFirst ? noAnswer : killed;
    },
  };
}

const finish = (world: SweepWorld, sandboxes: Sandboxes, runId = "run") =>
  world.clock.run(finishRun(world.context({ sandboxes }), runId));
const empty = (count: number) => new Array(count).fill("empty");

describe("a run that is finished", () => {
  it("leaves no slot behind for a kill whose answer was lost, run after run", async () => {
    const world = newWorld(4);
    for (let round = 0; round < 3; round += 1) {
      await world.register(`run${round}`, 2);
      await world.sweep();
      const sandboxes = firstOfEach(world);
      const answer = await finish(world, sandboxes, `run${round}`);
      expect(answer).toMatchObject({ kind: "finished", remainingSandboxes: [] });
      expect(world.states().filter((state) => state !== "empty")).toEqual([]);
      await world.clock.pass(1_000);
    }
    await world.register("last", 4);
    await world.sweep();
    expect(world.states()).toEqual(["ready", "ready", "ready", "ready"]);
  });

  it("leaves none even if no kill is ever answered, where the list shows that all are gone", async () => {
    const world = newWorld(2);
    await world.register("run", 2);
    await world.sweep();
    await world.clock.pass(70_000);
    const answer = await finish(
      world,
      losingKills(world, () => true),
    );
    expect(answer).toMatchObject({ kind: "finished", remainingSandboxes: [] });
    expect(world.states()).toEqual(empty(2));
  });
});

describe("an incident in which every kill fails", () => {
  it.each([
    ["and none is done", false],
    ["though all are done", true],
  ])("%s costs the pool nothing after it", async (_, isDone) => {
    const world = newWorld(2);
    let isIncident = true;
    const sandboxes = losingKills(world, () => isIncident, isDone);
    await world.register("run", 2);
    await world.sweep({ sandboxes });
    await finish(world, sandboxes);
    for (let minute = 0; minute < 3; minute += 1) {
      await world.sweep({ sandboxes });
      await world.clock.pass(60_000);
    }
    isIncident = false;
    await world.register("next", 2);
    await world.sweep({ sandboxes });
    expect(world.states()).toEqual(["ready", "ready"]);
    expect(world.cloud.alive.size).toBe(2);
  });

  it("lets workers that died be replaced while it lasts", async () => {
    const world = newWorld(2);
    const sandboxes = losingKills(world, () => true);
    await world.register("run", 2);
    await world.sweep({ sandboxes });
    for (let minute = 0; minute < 3; minute += 1) {
      await world.clock.pass(61_000);
      world.cloud.alive.clear();
      await world.clock.run(world.context().sandboxes.list("pool-1"));
      await world.sweep({ sandboxes });
      expect(world.states()).toEqual(["ready", "ready"]);
    }
  });
});

describe("who drains a worker by himself", () => {
  const broken = async (world: SweepWorld, overrides: Partial<SweepContext>) => {
    await world.register("run", 1);
    const lease = await world.clock.run(world.lease({}, overrides));
    await world.clock.pass(61_000);
    await world.clock.run(lease.release("broken"));
  };

  it.each([
    ["loses one answer", firstOfEach],
    ["gets none, and the list has nothing", (world: SweepWorld) => losingKills(world, () => true)],
  ])("the holder of a broken one %s: its slot is free at once", async (_, lossy) => {
    const world = newWorld(1);
    await broken(world, { sandboxes: lossy(world) });
    expect(world.states()).toEqual(["empty"]);
  });

  it("the holder keeps the slot closed while the list has the sandbox", async () => {
    const world = newWorld(1);
    await broken(world, { sandboxes: losingKills(world, () => true, false) });
    expect(world.states()).toEqual(["draining"]);
    await world.sweep();
    expect(world.states()).toEqual(["ready"]);
    expect(world.cloud.alive.size).toBe(1);
  });

  it.each([
    ["loses one answer", firstOfEach],
    ["gets none, and the list has nothing", (world: SweepWorld) => losingKills(world, () => true)],
  ])("who cancels a batch %s: the batch is cancelled at once", async (_, lossy) => {
    const world = newWorld(1);
    const ctx = world.context({ sandboxes: lossy(world) });
    await beginBatch(ctx, { batchId: "b", bodyHash: "h" });
    await addWorker(world, 0, { runTag: shortTag("run"), batchTag: shortTag("b") });
    await world.clock.pass(61_000);
    const stopper = { stop: () => Promise.reject(new Fault("worker_lost", "no answer")) };
    const cancelled = await world.clock.run(cancelBatch({ ...ctx, stopper }, "b"));
    expect(cancelled).toEqual({ kind: "cancelled", stopped: 1 });
    expect(world.states()).toEqual(["empty"]);
  });
});

describe("what may still come", () => {
  it("keeps its slot closed, whatever the list shows, until it can't land any more", async () => {
    const world = newWorld(1);
    await world.register("run", 1);
    const ctx = world.context();
    const claim = present(await claimSlot(ctx, 0, shortTag("run")));
    present(await abandonCreation(ctx, claim));
    for (let second = 0; second < 110; second += 10) {
      await world.sweep({ sandboxes: losingKills(world, () => true) });
      expect(world.states()).toEqual(["draining"]);
      await world.clock.pass(10_000);
    }
    world.addSandbox({ slot: 0, generation: claim.generation, sandboxId: "late" });
    await world.sweepFor(2);
    expect(world.cloud.alive.has("late")).toBe(false);
    expect(world.states()).toEqual(["ready"]);
  });

  it("a young worker that a list doesn't have yet is not taken for gone", async () => {
    const world = newWorld(1);
    await world.register("run", 1);
    await world.sweep();
    const blind = { ...losingKills(world, () => true, false), list: async () => [] };
    const lease = await world.clock.run(world.lease({}, { sandboxes: blind }));
    await world.clock.run(lease.release("broken"));
    await world.sweep({ sandboxes: blind });
    expect(world.states()).toEqual(["draining"]);
    await world.sweep();
    expect(world.cloud.killed).toContain(lease.workerId);
    expect(world.states()).toEqual(["ready"]);
  });
});
