/** Stopping a whole pool, for a person who wants to pay no more. */
import { expect, it } from "vitest";
import { getRun } from "../../functions/pool/runs/read.ts";
import { shortTag } from "../../functions/pool/slot-row.ts";
import { stopPool } from "../../functions/pool/sweep/stop-pool.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { addWorker, createSweepWorld, type SweepWorld } from "./sweep-world.ts";

const stop = (world: SweepWorld, overrides = {}) =>
  world.clock.run(stopPool(world.context(overrides), { deadlineAtMs: world.clock.nowMs() + 90_000 }));

const notEmpty = (world: SweepWorld) => world.states().filter((state) => state !== "empty");

it("ends what is free, held, being created or known to nobody, in seconds", async () => {
  const world = createSweepWorld({ createMs: 3_000 });
  await world.register("run", 4);
  await world.register("other", 2);
  await addWorker(world, 0);
  await addWorker(world, 1, { runTag: shortTag("run"), batchTag: "b" });
  await addWorker(world, 2, { runTag: shortTag("a run that nobody remembers"), batchTag: "c" });
  world.addSandbox({ sandboxId: "orphan", slot: 7, generation: 3 });
  const coming = world.lease().catch((error: unknown) => error);
  await world.clock.pass(500);
  const beganAtMs = world.clock.nowMs();
  const stopped = await stop(world);
  expect(stopped).toMatchObject({ endedRuns: ["other", "run"], remainingSandboxes: [], faults: [] });
  expect(stopped.killedSandboxes).toBeGreaterThanOrEqual(4);
  expect(world.clock.nowMs() - beganAtMs).toBeLessThan(20_000);
  await world.clock.pass(120_000);
  await coming;
  expect(world.cloud.alive.size).toBe(0);
  await world.sweepFor(4);
  expect(notEmpty(world)).toEqual([]);
  expect(world.cloud.alive.size).toBe(0);
});

it("kills first, before it brings any row in order", async () => {
  const world = createSweepWorld({ latencyMs: 500 });
  await world.register("run", 3);
  for (const slot of [0, 1, 2]) {
    await world.clock.run(addWorker(world, slot, { runTag: shortTag("run"), batchTag: "b" }));
  }
  const beganAtMs = world.clock.nowMs();
  const kill = world.cloud.sandboxes.kill;
  const killedAfterMs: number[] = [];
  world.cloud.sandboxes.kill = async (id) => {
    killedAfterMs.push(world.clock.nowMs() - beganAtMs);
    return kill(id);
  };
  await stop(world);
  expect(killedAfterMs.slice(0, 3).every((afterMs) => afterMs < 3_000)).toBe(true);
});

it("ends runs for good, also those that had expired", async () => {
  const world = createSweepWorld();
  await world.register("run", 1);
  await world.clock.pass(400_000);
  expect(await stop(world)).toMatchObject({ endedRuns: ["run"] });
  const run = await world.clock.run(getRun(world.context(), "run"));
  expect(run?.finishedAtMs).toBeDefined();
  expect(await stop(world)).toMatchObject({ endedRuns: [], killedSandboxes: 0, remainingSandboxes: [] });
});

it("leaves another deployment's sandboxes alone", async () => {
  const world = createSweepWorld();
  await addWorker(world, 0);
  world.addSandbox({ poolId: "pool-2", sandboxId: "theirs" });
  await stop(world);
  expect([...world.cloud.alive.keys()]).toEqual(["theirs"]);
});

it("leaves no worker of another version", async () => {
  const world = createSweepWorld();
  await world.register("run", 2);
  await world.sweep({ settings: { ...world.settings, supervisorVersion: "v0" } });
  expect(world.cloud.alive.size).toBe(2);
  expect(await stop(world)).toMatchObject({ killedSandboxes: 2, remainingSandboxes: [] });
  expect(notEmpty(world)).toEqual([]);
});

it("says what it could not kill", async () => {
  const world = createSweepWorld();
  await addWorker(world, 0);
  const fault = new Fault("sandbox_unavailable", "E2B is down");
  const kill = async () => ({ kind: "failed", reason: "ambiguous", fault }) as const;
  const { sandboxes } = world.context();
  const stopped = await stop(world, { sandboxes: { ...sandboxes, kill } });
  expect(stopped.remainingSandboxes).toEqual(["w0"]);
  expect(stopped.faults[0]).toMatchObject({ action: "kill", code: "sandbox_unavailable" });
});

it("does not say that nothing remains when the provider never told", async () => {
  const world = createSweepWorld();
  await addWorker(world, 0);
  const list = async () => {
    throw new Fault("sandbox_unavailable", "E2B is down");
  };
  const { sandboxes } = world.context();
  expect(await stop(world, { sandboxes: { ...sandboxes, list } })).toMatchObject({
    remainingSandboxes: null,
  });
});
