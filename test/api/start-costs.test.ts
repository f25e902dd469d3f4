/** What sandboxes cost until they are workers, or fail: paid by the run that asked for them, once. */
import { describe, expect, it } from "vitest";
import { batchOf, createRunsWorld, type RunsWorld } from "./runs-world.ts";

const grade = (sources = ["right"]) => ({ method: "POST", body: batchOf(sources, { run_id: "r" }) });
const totalsOf = async (world: RunsWorld, runId = "r") =>
  (await world.container().call(`/v1/runs/${runId}`)).body.totals;

describe("the start of a worker", () => {
  it("is in the usage of the batch that waited for it, and once in its run's totals", async () => {
    const world = createRunsWorld({ createMs: 3_000 });
    const one = world.container();
    await world.register("r", 1);
    const { usage } = (await one.call("/v1/rewards", grade(["slow"]))).body; // half a second
    expect(usage).toMatchObject({
      workers_created: 1,
      worker_seconds: 3.5,
      worker_seconds_since_previous_batch: 3.5,
    });
    expect(usage.cost_usd).toBeCloseTo(3.5 * (0.1089 / 3_600), 9);
    expect(await totalsOf(world)).toMatchObject({ workers_created: 1, worker_seconds: 3.5 });
    const next = (await one.call("/v1/rewards", grade(["slow"]))).body.usage;
    expect(next).toMatchObject({ worker_seconds: 0.5, worker_seconds_since_previous_batch: 0.5 });
  });

  it("that failed is paid for, too, until the sandbox was killed", async () => {
    const world = createRunsWorld({ createMs: 3_000 });
    const one = world.container();
    await world.register("r", 1);
    world.cloud.script.push("unproved");
    const { usage } = (await one.call("/v1/rewards", grade(["slow"]))).body;
    expect(usage.worker_seconds).toBe(6.5);
    expect(await totalsOf(world)).toMatchObject({ workers_created: 1, worker_seconds: 6.5 });
  });

  it("that was refused costs nothing", async () => {
    const world = createRunsWorld({ createMs: 3_000 });
    const one = world.container();
    await world.register("r", 1);
    world.cloud.script.push("refused");
    expect((await one.call("/v1/rewards", grade(["slow"]))).body.usage.worker_seconds).toBe(3.5);
  });

  it("that its batch did not wait for is its run's all the same", async () => {
    const world = createRunsWorld({ createMs: 8_000 });
    await world.register("r", 1);
    const body = { ...batchOf(["right"], { run_id: "r", options: { deadline_ms: 2_000 } }) };
    const refused = await world.container().call("/v1/rewards", { method: "POST", body });
    expect(refused.status).toBe(503);
    await world.clock.pass(10_000);
    expect(await totalsOf(world)).toMatchObject({ batches: 0, worker_seconds: 8 });
  });

  it("by the sweep is the cost of the run that lacked the worker", async () => {
    const world = createRunsWorld({ createMs: 2_000 });
    await world.register("r", 1);
    await world.register("other", 3);
    await world.sweep();
    expect((await totalsOf(world)).worker_seconds).toBe(2);
    expect((await totalsOf(world, "other")).worker_seconds).toBe(6);
  });

  it("is no idle time: with it, busy and idle time are the sandboxes' whole lives", async () => {
    const world = createRunsWorld({ createMs: 7_000 });
    const one = world.container();
    await world.register("r", 2);
    await world.sweepFor(1);
    for (let batch = 0; batch < 10; batch += 1) {
      await one.call("/v1/rewards", grade(Array.from({ length: 40 }, (_, n) => `slow ${batch} ${n}`)));
      await world.sweepFor(1);
    }
    // A sandbox is asked for 7 s before it is there, in this world.
    const lives = [...world.cloud.createdAtMs];
    expect(lives).toHaveLength(2);
    const { body } = await one.call("/v1/runs/r", { method: "DELETE" });
    const finishedAtMs = world.clock.nowMs();
    const livedMs = lives.reduce((sum, atMs) => sum + finishedAtMs - atMs, 0);
    expect(Math.abs(body.totals.worker_seconds * 1_000 - livedMs)).toBeLessThan(2_500);
  });
});
