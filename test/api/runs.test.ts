/** Runs over HTTP: many containers, one table, virtual time. */
import { describe, expect, it } from "vitest";
import {
  RunAnswer,
  RunFinished,
  RunHeartbeat,
  RunList,
  RunRegistration,
} from "../../functions/api/run-schemas.ts";
import { shortTag } from "../../functions/pool/slot-row.ts";
import { failing } from "../pool/broken-table.ts";
import { startMs } from "../pool/test-pool.ts";
import { batchOf, createRunsWorld, type RunsWorld } from "./runs-world.ts";

const nothingYet = {
  batches: 0,
  samples: 0,
  verdicts: {
    passed: 0,
    wrong_output: 0,
    runtime_error: 0,
    signaled: 0,
    time_limit: 0,
    memory_limit: 0,
    output_limit: 0,
  },
  faults: 0,
  retries: 0,
  workers_created: 0,
  worker_seconds: 0,
  cost_usd: 0,
};

const put = (body: unknown) => ({ method: "PUT", body });
const grade = (body: unknown, headers = {}) => ({ method: "POST", body, headers });

async function startRun(world: RunsWorld, runId = "job-7", workers = 2) {
  const one = world.container();
  await one.register(runId, workers);
  return one;
}

describe("PUT /v1/runs/{id}", () => {
  it("registers the run, creates its workers, and says until when it lives", async () => {
    const world = createRunsWorld({ createMs: 300 });
    const one = world.container();
    const body = { name: "grpo", workers: 3, metadata: { host: "a" } };
    const first = await one.call("/v1/runs/job-7", put(body));
    expect(first.status).toBe(201);
    expect(RunRegistration.parse(first.body)).toEqual({
      run_id: "job-7",
      expires_at: new Date(startMs + 300_000).toISOString(),
      workers_ready: 3,
    });
    expect(world.cloud.alive.size).toBe(3);
    expect(await one.call("/v1/runs/job-7", put(body))).toMatchObject({
      status: 200,
      body: { workers_ready: 3 },
    });
    expect((await one.call("/v1/runs/job-7")).body).toEqual({
      run_id: "job-7",
      name: "grpo",
      state: "active",
      totals: { ...nothingYet, worker_seconds: 0.9, cost_usd: expect.closeTo(0.9 * (0.1089 / 3_600), 9) },
    });
  });

  it("wants two workers unless told, and is called by its id", async () => {
    const world = createRunsWorld();
    const one = world.container();
    expect((await one.call("/v1/runs/a", put({}))).body).toMatchObject({ workers_ready: 2 });
    expect((await one.call("/v1/runs/a")).body).toMatchObject({ name: "a" });
  });

  it("creates what fits into 20 s, and the sweep the rest", async () => {
    const world = createRunsWorld({ createMs: 300, settings: { createIntervalMs: 4_000 } });
    const { body } = await world.container().register("job-7", 20);
    expect(body.workers_ready).toBeGreaterThanOrEqual(2);
    expect(body.workers_ready).toBeLessThan(8);
    expect(world.clock.nowMs()).toBeLessThanOrEqual(startMs + 21_000);
    await world.sweepFor(2);
    expect(world.states()).toEqual(new Array(20).fill("ready"));
  });

  it.each(
    [1, 2, 3, 4, 5].flatMap((seed) => [1_000, 200].map((createIntervalMs) => ({ seed, createIntervalMs }))),
  )(
    "said by sixteen ranks at once makes one run with its workers and no more: $seed, $createIntervalMs ms",
    async ({ seed, createIntervalMs }) => {
      const world = createRunsWorld({ createMs: 700, latencyMs: 30, seed, settings: { createIntervalMs } });
      const containers = Array.from({ length: 4 }, () => world.container());
      const sent = Array.from({ length: 16 }, (_, rank) =>
        (containers[rank % 4] as (typeof containers)[0]).send("/v1/runs/job-7", put({ workers: 3 })),
      );
      await world.settle();
      const answers = await Promise.all(sent.map((one) => world.answer(one)));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([...new Array(15).fill(200), 201]);
      expect((await containers[0]?.call("/v1/runs"))?.body.runs).toHaveLength(1);
      expect(world.cloud.createdAtMs).toHaveLength(3);
      expect(world.states()).toEqual(["ready", "ready", "ready"]);
    },
  );

  it.each([
    ["a body that isn't an object", "/v1/runs/a", [], [""]],
    ["an unknown field", "/v1/runs/a", { worker: 2 }, ["/worker"]],
    ["no worker", "/v1/runs/a", { workers: 0 }, ["/workers"]],
    ["more workers than slots", "/v1/runs/a", { workers: 21 }, ["/workers"]],
    ["part of a worker", "/v1/runs/a", { workers: 1.5 }, ["/workers"]],
    ["a name that is none", "/v1/runs/a", { name: 7 }, ["/name"]],
    ["metadata of another kind", "/v1/runs/a", { metadata: { a: 1 } }, ["/metadata/a"]],
    [
      "too many pairs",
      "/v1/runs/a",
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, ""])) },
      ["/metadata"],
    ],
    ["an id with a space", "/v1/runs/a%20b", {}, [""]],
    ["several things", "/v1/runs/a%20b", { workers: 0, name: null }, ["/name", "/workers", ""]],
  ])("refuses %s, and does nothing", async (_, path, body, pointers) => {
    const world = createRunsWorld();
    const refused = await world.container().call(path, put(body));
    expect(refused).toMatchObject({ status: 422, body: { code: "invalid_request" } });
    expect(refused.body.errors.map(({ pointer }: { pointer: string }) => pointer)).toEqual(pointers);
    expect(world.table.rows()).toEqual([]);
  });

  it("refuses a body that isn't JSON", async () => {
    const one = createRunsWorld().container();
    expect((await one.call("/v1/runs/a", put("{"))).body.code).toBe("invalid_json");
    const answer = await one.call("/v1/runs/a", {
      method: "PUT",
      body: "{}",
      headers: { "content-type": "text/plain" },
    });
    expect(answer.body.code).toBe("unsupported_media_type");
  });
});

describe("POST /v1/runs/{id}/heartbeat", () => {
  it.each([
    ["no body", undefined],
    ["an empty body", ""],
    ["an empty object", {}],
  ])("keeps the run alive with %s", async (_, body) => {
    const world = createRunsWorld();
    const one = await startRun(world);
    await world.clock.pass(200_000);
    const beat = await one.call("/v1/runs/job-7/heartbeat", { method: "POST", body });
    expect(beat.status).toBe(200);
    const expires_at = new Date(world.clock.nowMs() + 300_000).toISOString();
    expect(RunHeartbeat.parse(beat.body)).toEqual({ run_id: "job-7", expires_at });
    await world.clock.pass(299_000);
    expect((await one.call("/v1/runs/job-7")).body.state).toBe("active");
    await world.clock.pass(2_000);
    expect((await one.call("/v1/runs/job-7")).body.state).toBe("expired");
  });

  it("refuses a body with anything in it", async () => {
    const one = await startRun(createRunsWorld());
    const refused = await one.call("/v1/runs/job-7/heartbeat", { method: "POST", body: { at: 1 } });
    expect(refused).toMatchObject({ status: 422, body: { errors: [{ pointer: "/at" }] } });
  });
});

describe("a run that isn't there, or not any more", () => {
  it.each([
    ["GET", "/v1/runs/nobody", undefined],
    ["DELETE", "/v1/runs/nobody", undefined],
    ["POST", "/v1/runs/nobody/heartbeat", undefined],
    ["POST", "/v1/runs/a%20b/heartbeat", undefined],
    ["POST", "/v1/rewards", batchOf(["right"], { run_id: "nobody" })],
  ])("%s %s is 404", async (method, path, body) => {
    const world = createRunsWorld();
    const refused = await world.container().call(path, { method, body });
    expect(refused).toMatchObject({ status: 404, body: { code: "run_not_found" } });
    expect(world.table.rows()).toEqual([]);
  });

  it.each([
    ["PUT", "/v1/runs/job-7", {}],
    ["POST", "/v1/runs/job-7/heartbeat", undefined],
    ["POST", "/v1/rewards", batchOf(["right"], { run_id: "job-7" })],
  ])("once finished, %s %s is 409, and no worker is leased", async (method, path, body) => {
    const world = createRunsWorld();
    const one = await startRun(world);
    await one.call("/v1/runs/job-7", { method: "DELETE" });
    const writes = world.table.counts.writes;
    const headers = { accept: "application/x-ndjson" };
    const refused = await one.call(path, { method, body, headers });
    expect(refused).toMatchObject({ status: 409, body: { code: "run_finished" } });
    expect(world.table.counts.writes - writes).toBeLessThanOrEqual(1); // the refused write itself
    expect(world.hands.log).toEqual([]);
  });
});

describe("a run's batches", () => {
  it("are in its totals before their answer is", async () => {
    const world = createRunsWorld();
    const one = await startRun(world);
    const sources = ["right", "right", "crash", "starved", "# nothing"];
    const body = batchOf(sources, { run_id: "job-7" });
    body.samples.push({ task: "t", completion: "I don't know." });
    await world.clock.pass(10_000);
    const graded = await one.call("/v1/rewards", grade(body));
    expect(graded.body.rewards).toEqual([1, 1, 0, null, 1, 0]);
    expect(graded.body.usage).toMatchObject({ duplicates: 1, retries: 2, worker_seconds: 0 });
    expect(graded.body.usage.cost_usd).toBe(0);
    const run = RunAnswer.parse((await one.call("/v1/runs/job-7")).body);
    expect(run.totals).toMatchObject({
      batches: 1,
      samples: 6,
      verdicts: { ...nothingYet.verdicts, passed: 6, runtime_error: 2 },
      faults: 1,
      retries: 2,
    });
    expect(RunList.parse((await one.call("/v1/runs")).body).runs).toEqual([run]);
  });

  it("tell what workers cost since the one before, idle time too", async () => {
    const world = createRunsWorld();
    const one = await startRun(world);
    const body = batchOf(["right"], { run_id: "job-7" });
    await one.call("/v1/rewards", grade(body));
    for (let minute = 0; minute < 3; minute += 1) {
      await world.clock.pass(60_000);
      await world.sweepOnce();
    }
    const { usage } = (await one.call("/v1/rewards", grade(body))).body;
    expect(usage.worker_seconds_since_previous_batch).toBeGreaterThan(330);
    expect(usage.worker_seconds_since_previous_batch).toBeLessThan(390);
    const { totals } = (await one.call("/v1/runs/job-7")).body;
    expect(totals.worker_seconds).toBeCloseTo(360, -2);
    expect(totals.cost_usd).toBeCloseTo((totals.worker_seconds / 3_600) * (2 * 0.0504 + 0.5 * 0.0162), 9);
  });

  it("hold no more workers than their run wants, and lease in its name", async () => {
    const world = createRunsWorld();
    const one = await startRun(world, "job-7", 3);
    await startRun(world, "job-8", 5);
    const gone = new AbortController();
    const sent = one.app.request("/v1/rewards", {
      method: "POST",
      headers: { authorization: "Bearer a-key-for-tests", "content-type": "application/json" },
      body: JSON.stringify(
        batchOf(
          Array.from({ length: 200 }, (_, i) => `hang ${i}`),
          { run_id: "job-7" },
        ),
      ),
      signal: gone.signal,
    });
    await world.settle();
    await world.clock.pass(5_000);
    const held = world.slots().filter(({ state }) => state === "leased");
    expect(held).toHaveLength(3);
    expect(new Set(held.map(({ heldForRun }) => heldForRun))).toEqual(new Set([shortTag("job-7")]));
    gone.abort();
    expect((await world.answer(Promise.resolve(sent))).status).toBe(409);
    expect(world.hands.running.size).toBe(0);
    const { totals } = (await one.call("/v1/runs/job-7")).body;
    expect(totals).toMatchObject({ batches: 1, samples: 0, worker_seconds: 15 });
  });

  it("give one of several workers to a run that waits with none, at a chunk's end", async () => {
    const world = createRunsWorld({ settings: { slots: 2 } });
    const [one, other] = [await startRun(world, "job-7", 2), world.container()];
    await other.register("job-8", 1);
    const sources = Array.from({ length: 400 }, (_, i) => `slow ${i}`); // 200 s of work for one worker
    const long = one.send("/v1/rewards", grade(batchOf(sources, { run_id: "job-7" })));
    await world.settle();
    await world.clock.pass(100);
    expect(world.slots().every(({ heldForRun }) => heldForRun === shortTag("job-7"))).toBe(true);
    const askedAtMs = world.clock.nowMs();
    const short = await other.call("/v1/rewards", grade(batchOf(["right"], { run_id: "job-8" })));
    expect(short.body.rewards).toEqual([1]);
    expect(world.clock.nowMs() - askedAtMs).toBeLessThan(60_000);
    const { rewards, usage } = (await world.answer(long)).body;
    expect(new Set(rewards)).toEqual(new Set([1]));
    expect(usage.retries).toBe(0);
    expect(usage.wall_ms).toBeLessThan(130_000); // the worker came back soon
  });

  it("are answered although the table takes no note of them", async () => {
    const world = createRunsWorld();
    await startRun(world);
    const table = failing(world.table, (operation) => (operation === "note batch" ? "unsent" : "no"));
    const graded = await world
      .container({ table })
      .call("/v1/rewards", grade(batchOf(["right"], { run_id: "job-7" })));
    expect(graded).toMatchObject({ status: 200, body: { rewards: [1] } });
    expect(graded.body.usage.worker_seconds_since_previous_batch).toBeNull();
    expect(world.reported).toEqual([expect.objectContaining({ code: "store_unavailable" })]);
  });

  it("may be of the run 'default', which nobody registers", async () => {
    const world = createRunsWorld();
    const one = world.container();
    expect((await one.call("/v1/rewards", grade(batchOf(["right"])))).body.rewards).toEqual([1]);
    expect((await one.call("/v1/runs/default")).body).toMatchObject({
      state: "active",
      totals: { batches: 1 },
    });
  });

  it("may be of the default run again after it was finished, in each container", async () => {
    const world = createRunsWorld();
    const [one, other] = [world.container(), world.container()];
    const body = grade(batchOf(["right"]));
    expect((await one.call("/v1/rewards", body)).body.rewards).toEqual([1]);
    expect((await other.call("/v1/runs/default", { method: "DELETE" })).body.remaining_sandboxes).toEqual([]);
    await world.clock.pass(2_000);
    expect((await one.call("/v1/rewards", body)).body.rewards).toEqual([1]);
    expect((await other.call("/v1/runs/default")).body).toMatchObject({
      state: "active",
      totals: { batches: 2 },
    });
  });

  it("cost two writes per leased worker and one each", async () => {
    const world = createRunsWorld();
    const one = await startRun(world, "job-7", 1);
    const { writes, refusals } = { ...world.table.counts };
    const batches = 1_000;
    for (let i = 0; i < batches; i += 1) {
      const body = batchOf([`right ${i}`], { run_id: "job-7", options: { detail: "rewards" } });
      const { rewards } = (await one.call("/v1/rewards", grade(body))).body;
      if (rewards[0] !== 1) throw new Error(`batch ${i}: ${JSON.stringify(rewards)}`);
    }
    const spent = world.table.counts.writes - writes;
    console.log(`table writes: ${spent} for ${batches} batches of one worker each`);
    expect(spent).toBeLessThanOrEqual(3 * batches);
    expect(world.table.counts.refusals).toBe(refusals);
  }, 60_000);
});

describe("DELETE /v1/runs/{id}", () => {
  it("answers when no sandbox is left for it, and the same again", async () => {
    const world = createRunsWorld();
    const one = await startRun(world);
    await one.call("/v1/rewards", grade(batchOf(["right"], { run_id: "job-7" })));
    const finished = await one.call("/v1/runs/job-7", { method: "DELETE" });
    expect(RunFinished.parse(finished.body)).toMatchObject({
      run_id: "job-7",
      remaining_sandboxes: [],
      totals: { batches: 1, samples: 1 },
    });
    expect(world.cloud.alive.size).toBe(0);
    expect((await world.container().call("/v1/runs/job-7", { method: "DELETE" })).body).toEqual(
      finished.body,
    );
    expect((await one.call("/v1/runs/job-7")).body).toMatchObject({ state: "finished" });
  });

  it("leaves what other runs need", async () => {
    const world = createRunsWorld();
    const one = await startRun(world, "job-7", 2);
    await one.register("job-8", 2);
    await one.call("/v1/runs/job-7", { method: "DELETE" });
    expect(world.states().filter((state) => state === "ready")).toHaveLength(2);
  });

  it("tells after half a minute what is still there", async () => {
    const world = createRunsWorld();
    const one = await startRun(world, "job-7", 1);
    world.cloud.kills = "failed";
    const { body, status } = await one.call("/v1/runs/job-7", { method: "DELETE" });
    expect(status).toBe(200);
    expect(body.remaining_sandboxes).toEqual([...world.cloud.alive.keys()]);
    expect(world.clock.nowMs()).toBeGreaterThan(startMs + 30_000);
  });

  it.each([
    ["as JSON", "application/json", 409],
    ["as lines", "application/x-ndjson", 200],
  ])("ends batches that are under way elsewhere, answered %s", async (_, accept, status) => {
    const world = createRunsWorld();
    const one = await startRun(world);
    const sent = one.send("/v1/rewards", grade(batchOf(["hang"], { run_id: "job-7" }), { accept }));
    await world.settle();
    expect(world.hands.running.size).toBe(1);
    const finishing = world.container().call("/v1/runs/job-7", { method: "DELETE" });
    const [answer, finished] = await Promise.all([world.answer(sent), finishing]);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({
      code: "run_finished",
    });
    expect(finished.body).toMatchObject({ remaining_sandboxes: [], totals: { batches: 0 } });
    expect(world.hands.running.size).toBe(0);
    expect(world.cloud.alive.size).toBe(0);
  });

  it("ends a batch that still waits for its workers", async () => {
    const world = createRunsWorld({ settings: { slots: 1 } });
    const one = await startRun(world, "job-7", 1);
    await one.register("job-8", 1);
    const holding = one.send("/v1/rewards", grade(batchOf(["hang"], { run_id: "job-8" })));
    await world.settle();
    const waiting = one.send("/v1/rewards", grade(batchOf(["right"], { run_id: "job-7" })));
    await world.settle();
    await one.call("/v1/runs/job-7", { method: "DELETE" });
    expect(await world.answer(waiting)).toMatchObject({ status: 409, body: { code: "run_finished" } });
    expect(world.hands.running.size).toBe(1);
    await world.clock.run(one.stop());
    expect(await world.answer(holding)).toMatchObject({ status: 503, body: { code: "stopping" } });
  });
});
