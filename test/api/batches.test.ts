/** Cancelling batches by their key, from any container. */
import { describe, expect, it } from "vitest";
import { BatchCancelled } from "../../functions/api/run-schemas.ts";
import { failing } from "../pool/broken-table.ts";
import { batchOf, createRunsWorld } from "./runs-world.ts";

/** One case, so that one worker has all of the batch. */
const oneCase = { tasks: { t: { test_cases: [{ input: "1", output: "1" }] } } };
const hanging = batchOf(["hang"], oneCase);
const keyed = (key: string, body: unknown = hanging) => ({
  method: "POST",
  body,
  headers: { "idempotency-key": key },
});
const cancelling = { method: "DELETE" };
const cancelled = { status: 409, body: { code: "cancelled" } };

/** A world with a batch `a/1` that hangs on one worker. */
async function startHanging(options = {}) {
  const world = createRunsWorld(options);
  const one = world.container();
  const sent = one.send("/v1/rewards", keyed("a/1"));
  await world.settle();
  await world.clock.pass(1_500);
  expect(world.hands.running.size).toBe(1);
  return { world, one, other: world.container(), sent };
}

describe("DELETE /v1/batches/{key}", () => {
  it("stops the batch's programs in another container, whose caller is told", async () => {
    const { world, other, sent } = await startHanging();
    const deleted = await other.call("/v1/batches/a%2F1", cancelling);
    expect(deleted.status).toBe(200);
    expect(BatchCancelled.parse(deleted.body)).toEqual({ cancelled: true, stopped: 1 });
    expect(world.hands.running.size).toBe(0);
    expect(await world.answer(sent)).toMatchObject(cancelled);
    expect(world.hands.log).toEqual(["executed 1", "stopped 2"]); // and nothing is tried again elsewhere
    expect(world.states()).toEqual(["ready"]);
    expect((await other.call("/v1/batches/a%2F1", cancelling)).body).toEqual({ cancelled: true, stopped: 0 });
  });

  it("stops it on all of its workers", async () => {
    const world = createRunsWorld();
    const one = world.container();
    await one.register("job-7", 3);
    const sources = Array.from({ length: 100 }, (_, i) => `hang ${i}`);
    const sent = one.send("/v1/rewards", keyed("a", batchOf(sources, { run_id: "job-7" })));
    await world.settle();
    await world.clock.pass(3_000);
    expect(world.hands.running.size).toBe(3);
    expect((await world.container().call("/v1/batches/a", cancelling)).body.stopped).toBe(3);
    expect(await world.answer(sent)).toMatchObject(cancelled);
    expect(world.states()).toEqual(["ready", "ready", "ready"]);
  });

  it("gives the worker to nobody before its supervisor has said that it is clean", async () => {
    const { world, one, other, sent } = await startHanging({ settings: { slots: 1 } });
    const next = other.send("/v1/rewards", { method: "POST", body: batchOf(["right"]) });
    await world.settle();
    await one.call("/v1/batches/a%2F1", cancelling);
    expect((await world.answer(next)).body.rewards).toEqual([1]);
    expect(world.hands.log).toEqual(["executed 1", "stopped 2", "executed 3"]);
    expect(await world.answer(sent)).toMatchObject(cancelled);
  });

  it("ends a worker that doesn't say so", async () => {
    const { world, other, sent } = await startHanging();
    world.hands.confirms = false;
    expect(await other.call("/v1/batches/a%2F1", cancelling)).toMatchObject({ status: 200 });
    expect(world.cloud.alive.size).toBe(0);
    expect(world.states()).toEqual(["empty"]);
    expect(await world.answer(sent)).toMatchObject(cancelled);
  });

  it("is 503 while a worker neither says so nor can be ended", async () => {
    const { world, one, other } = await startHanging();
    world.hands.confirms = false;
    world.cloud.kills = "failed";
    const refused = await other.call("/v1/batches/a%2F1", cancelling);
    expect(refused).toMatchObject({ status: 503, body: { code: "sandbox_unavailable" } });
    expect(refused.headers.get("retry-after")).not.toBeNull();
    await world.clock.run(one.stop());
  });

  it("ends a batch that still waits for a worker", async () => {
    const { world, one, other } = await startHanging({ settings: { slots: 1 } });
    const waiting = other.send("/v1/rewards", keyed("b", batchOf(["right"])));
    await world.settle();
    expect((await one.call("/v1/batches/b", cancelling)).body).toEqual({ cancelled: true, stopped: 0 });
    expect(await world.answer(waiting)).toMatchObject(cancelled);
    expect(world.hands.running.size).toBe(1);
    await world.clock.run(one.stop());
  });

  it("reaches the caller of a stream as its last line", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const headers = { "idempotency-key": "a", accept: "application/x-ndjson" };
    const sent = one.send("/v1/rewards", { method: "POST", body: batchOf(["hang"]), headers });
    await world.settle();
    await world.clock.pass(1_500);
    await one.call("/v1/batches/a", cancelling);
    const lines = (await world.answer(sent)).text.trimEnd().split("\n");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ type: "error", code: "cancelled" });
  });

  it("knows a batch that is over, and changes nothing", async () => {
    const world = createRunsWorld();
    const one = world.container();
    expect((await one.call("/v1/rewards", keyed("a", batchOf(["right"])))).body.rewards).toEqual([1]);
    expect(await one.call("/v1/batches/a", cancelling)).toMatchObject({
      status: 200,
      body: { cancelled: false, stopped: 0 },
    });
  });

  it("may be sent again under its key, and runs", async () => {
    const { world, one, other, sent } = await startHanging();
    await other.call("/v1/batches/a%2F1", cancelling);
    expect((await one.call("/v1/rewards", keyed("a/1", batchOf(["right"])))).body.rewards).toEqual([1]);
    expect(await world.answer(sent)).toMatchObject(cancelled);
  });

  it("takes no worker of the batch that is sent again under its key before all have stopped", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const sent = one.send("/v1/rewards", keyed("a"));
    await world.settle();
    await world.clock.pass(1_500);
    expect(world.hands.running.size).toBe(1);
    world.hands.stopsInMs = 2_000;
    const deleting = world.container().send("/v1/batches/a", cancelling);
    await world.settle();
    await world.clock.pass(100);
    const many = Array.from({ length: 12 }, (_, index) => `slow ${index}`);
    const again = one.send("/v1/rewards", keyed("a", batchOf(many)));
    await world.settle();
    expect((await world.answer(deleting)).body).toEqual({ cancelled: true, stopped: 1 });
    const { rewards, usage } = (await world.answer(again)).body;
    expect(rewards).toEqual(many.map(() => 1));
    expect(usage).toMatchObject({ retries: 0 });
    expect(await world.answer(sent)).toMatchObject(cancelled);
  });

  it.each([
    ["never sent", "b", {}],
    ["sent with another API key", "a%2F1", { authorization: "Bearer another-key" }],
  ])("is 404 for a key that was %s", async (_, key, headers) => {
    const { world, one, other } = await startHanging();
    const refused = await other.call(`/v1/batches/${key}`, { method: "DELETE", headers });
    expect(refused).toMatchObject({ status: 404, body: { code: "not_found" } });
    expect(world.hands.running.size).toBe(1);
    await world.clock.run(one.stop());
  });

  it("forgets batches after an hour", async () => {
    const world = createRunsWorld();
    const one = world.container();
    await one.call("/v1/rewards", keyed("a", batchOf(["right"])));
    await world.clock.pass(3_602_000);
    expect((await one.call("/v1/batches/a", cancelling)).status).toBe(404);
  });
});

describe("a batch's key", () => {
  it.each([
    ["", 0],
    ["x".repeat(201), 201],
  ])("may not be '%s'", async (key, characters) => {
    const world = createRunsWorld();
    const refused = await world.container().call("/v1/rewards", keyed(key));
    expect(refused).toMatchObject({ status: 422, body: { code: "invalid_request" } });
    expect(refused.body.detail).toContain(`has ${characters}`);
    expect(world.table.rows()).toEqual([]);
  });
});

describe("a worker that is lost to nobody's cancellation", () => {
  it("costs its batch a retry and no more, also when the table doesn't say why it was lost", async () => {
    const { world, one } = await startHanging();
    const table = failing(world.table, (operation) => (operation === "get" && asks ? "unsent" : "no"));
    let asks = false;
    const other = world.container({ table });
    const sent = other.send("/v1/rewards", keyed("b"));
    await world.settle();
    await world.clock.pass(3_000);
    asks = true;
    const [, mine] = [...world.hands.running];
    mine?.supersede.abort();
    await world.settle();
    await world.clock.pass(3_000);
    expect(world.hands.running.size).toBe(2);
    const codes = world.reported.map((fault) => (fault as { code: string }).code);
    expect(new Set(codes)).toEqual(new Set(["store_unavailable"]));
    asks = false;
    await world.clock.run(Promise.all([one.stop(), other.stop()]));
    expect(await world.answer(sent)).toMatchObject({ body: { code: "stopping" } });
  });
});
