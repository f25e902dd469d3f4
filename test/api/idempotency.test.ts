/** The same batch sent again under its key, to any container, at any time. */
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { failing } from "../pool/broken-table.ts";
import { type Answer, batchOf, createRunsWorld, type RunsWorld } from "./runs-world.ts";
import { jsonHeaders } from "./test-app.ts";

type Container = ReturnType<RunsWorld["container"]>;

/** One case, so that one worker has all of the batch. */
const oneCase = { tasks: { t: { test_cases: [{ input: "1", output: "1" }] } } };
const json = "application/json";
const ndjson = "application/x-ndjson";
const cancelling = { method: "DELETE" };

const keyed = (body: unknown = batchOf(["right", "crash"]), more: Record<string, string> = {}) => ({
  method: "POST",
  body,
  headers: { "idempotency-key": "step/1", ...more },
});

/** What every answer to one key has in common, however it was asked for. */
function essence(answer: Answer) {
  if (answer.body !== undefined && answer.body.type !== "summary") {
    const { request_id: _, ...rest } = answer.body;
    return rest;
  }
  const lines = answer.text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const { type, request_id: _, usage, rewards } = lines.at(-1);
  expect(type).toBe("summary");
  const results: unknown[] = [];
  for (const { type: kind, index, ...sample } of lines) if (kind === "result") results[index] = sample;
  const isRewards = Object.keys(results[0] as object).join() === "reward";
  return { rewards, ...(isRewards ? { faults: [] } : { results }), usage };
}

function executions({ hands }: RunsWorld): number {
  return hands.log.filter((line) => line.startsWith("executed")).length;
}

/** Sends until the answer is another than `in_progress`, as a client does. */
async function insist({ clock, settle }: RunsWorld, container: Container, how = keyed()): Promise<Answer> {
  for (;;) {
    const response = await container.send("/v1/rewards", how);
    if (response.status !== 409) {
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, body: parse(text) };
    }
    expect(await response.json()).toMatchObject({ code: "in_progress" });
    await clock.sleep(Number(response.headers.get("retry-after")) * 1_000);
    await settle();
  }
}

/** Lets time pass until it is done: many requests are read at once, which takes turns of the event loop. */
async function whileTimePasses<T>({ clock, settle }: RunsWorld, doing: Promise<T>): Promise<T> {
  let isDone = false;
  const end = () => {
    isDone = true;
  };
  doing.then(end, end);
  while (!isDone) {
    await settle();
    await clock.pass(100);
  }
  return doing;
}

function parse(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A table that its container does not reach while it stands still. */
function freezable(table: Table) {
  let thawed = Promise.resolve();
  let thaw = () => {};
  const waiting = async <T>(call: () => Promise<T>): Promise<T> => {
    await thawed;
    return call();
  };
  return {
    table: {
      get: (key) => waiting(() => table.get(key)),
      query: (pk, prefix) => waiting(() => table.query(pk, prefix)),
      update: (...call) => waiting(() => table.update(...call)),
    } satisfies Table,
    freeze() {
      thawed = new Promise((resolve) => {
        thaw = resolve;
      });
    },
    thaw: () => thaw(),
  };
}

describe("a batch that is sent again under its key", () => {
  const details = ["rewards", "verdicts", "output"];
  const forms = [json, ndjson];
  it.each(
    details.flatMap((detail) => forms.flatMap((first) => forms.map((second) => ({ detail, first, second })))),
  )("is answered again with $detail, first as $first, then as $second", async ({ detail, first, second }) => {
    const world = createRunsWorld();
    const body = batchOf(["right", "crash", "right", "right 2"], { options: { detail } });
    const [one, other] = [world.container(), world.container()];
    const answer = await one.call("/v1/rewards", keyed(body, { accept: first }));
    const ran = executions(world);
    const again = await other.call("/v1/rewards", keyed(body, { accept: second, "x-request-id": "again" }));
    expect(essence(again)).toEqual(essence(answer));
    expect(essence(again).rewards).toEqual([1, 0, 1, 1]);
    expect(again.status).toBe(200);
    expect(again.headers.get("content-type")).toBe(second);
    expect(again.headers.get("x-request-id")).toBe("again");
    expect(again.text).toContain('"request_id":"again"');
    expect(executions(world)).toBe(ran);
    const run = await one.call("/v1/runs/default");
    expect(run.body.totals).toMatchObject({ batches: 1, samples: 4 });
  });

  it("has the very bytes of the first JSON answer, but for the request's id", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const answers = [];
    for (const id of ["first", "again"]) {
      const { text } = await one.call("/v1/rewards", keyed(undefined, { "x-request-id": id }));
      answers.push(text.replace(id, ""));
    }
    expect(answers[1]).toBe(answers[0]);
  });

  it("runs once and answers twenty callers alike who all come at once", async () => {
    const world = createRunsWorld();
    const containers = Array.from({ length: 5 }, () => world.container());
    const body = batchOf(["slow 1", "slow 2", "crash"]);
    const callers = Array.from({ length: 20 }, (_, caller) =>
      insist(world, containers[caller % 5] as Container, keyed(body)),
    );
    await world.settle();
    const answers = await whileTimePasses(world, Promise.all(callers));
    for (const answer of answers) expect(essence(answer)).toEqual(essence(answers[0] as Answer));
    expect(answers[0]?.body.usage.programs_run).toBe(3);
    expect(executions(world)).toBe(1);
  });

  it("costs two more writes than without a key, and a replay one", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const body = batchOf(["right"]);
    const writes = async (how: Parameters<Container["call"]>[1]) => {
      const before = world.table.counts.writes;
      expect((await one.call("/v1/rewards", how)).body.rewards).toEqual([1]);
      return world.table.counts.writes - before;
    };
    await writes({ method: "POST", body });
    const plain = await writes({ method: "POST", body });
    expect(await writes(keyed(body))).toBe(plain + 2);
    expect(await writes(keyed(body))).toBe(1);
  });

  it("is known by its inflated bytes", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const text = JSON.stringify(batchOf(["right"]));
    await one.call("/v1/rewards", keyed(text));
    const headers = { ...jsonHeaders, "content-encoding": "gzip", "idempotency-key": "step/1" };
    const sent = one.app.request("/v1/rewards", { method: "POST", headers, body: gzipSync(text) });
    const zipped = await whileTimePasses(world, Promise.resolve(sent));
    expect(await zipped.json()).toMatchObject({ rewards: [1] });
    expect(executions(world)).toBe(1);
    const spaced = await one.call("/v1/rewards", keyed(` ${text}`));
    expect(spaced).toMatchObject({ status: 422, body: { code: "idempotency_mismatch" } });
  });

  it("is refused with another body, before and after the answer", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const first = one.send("/v1/rewards", keyed(batchOf(["slow"])));
    await world.settle();
    const refused = { status: 422, body: { code: "idempotency_mismatch" } };
    expect(await world.answer(one.send("/v1/rewards", keyed(batchOf(["right"]))))).toMatchObject(refused);
    await world.answer(first);
    expect(await one.call("/v1/rewards", keyed(batchOf(["right"])))).toMatchObject(refused);
    expect(executions(world)).toBe(1);
  });

  it.each([json, ndjson])("is refused as %s while the first is under way", async (accept) => {
    const world = createRunsWorld();
    const one = world.container();
    const first = one.send("/v1/rewards", keyed(batchOf(["hang"], oneCase)));
    await world.settle();
    await world.clock.pass(1_500);
    const refused = await world
      .container()
      .send("/v1/rewards", keyed(batchOf(["hang"], oneCase), { accept, "x-request-id": "second" }));
    expect(refused.status).toBe(409);
    expect(refused.headers.get("retry-after")).toBe("2");
    expect(await refused.json()).toMatchObject({ code: "in_progress", request_id: "second" });
    await world.clock.run(one.stop());
    await world.answer(first);
  });

  it("is another batch with another API key", async () => {
    const world = createRunsWorld();
    const one = world.container();
    await one.call("/v1/rewards", keyed());
    const other = keyed(batchOf(["right"]), { authorization: "Bearer another-key" });
    expect((await one.call("/v1/rewards", other)).body.rewards).toEqual([1]);
  });

  it("is answered for an hour, and then runs", async () => {
    const world = createRunsWorld();
    const one = world.container();
    await one.call("/v1/rewards", keyed());
    await world.clock.pass(3_595_000);
    await one.call("/v1/rewards", keyed());
    expect(executions(world)).toBe(1);
    await world.clock.pass(10_000);
    expect((await one.call("/v1/rewards", keyed())).body.rewards).toEqual([1, 0]);
    expect(executions(world)).toBe(2);
  });

  it("is answered also when its run is finished, and unknown runs have no answer", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const body = batchOf(["right"], { run_id: "job-7" });
    expect(await one.call("/v1/rewards", keyed(body))).toMatchObject({ body: { code: "run_not_found" } });
    await one.register("job-7");
    const first = await one.call("/v1/rewards", keyed(body));
    await one.call("/v1/runs/job-7", cancelling);
    expect(essence(await one.call("/v1/rewards", keyed(body)))).toEqual(essence(first));
    const next = keyed(body, { "idempotency-key": "step/2" });
    expect(await one.call("/v1/rewards", next)).toMatchObject({ body: { code: "run_finished" } });
  });
});

describe("what is not recorded runs again:", () => {
  it("an answer with a fault", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const body = batchOf(["right", "starved"]);
    for (const ran of [2, 4]) {
      expect((await one.call("/v1/rewards", keyed(body))).body.rewards).toEqual([1, null]);
      expect(executions(world)).toBe(ran); // the starved one once more, alone
    }
  });

  it.each([
    ["that nobody understands", "{", batchOf(["right"])],
    ["that is wrong", { samples: [] }, batchOf(["right"])],
    ["of an unknown run", batchOf(["right"], { run_id: "nobody's" }), batchOf(["right"])],
  ])("a body %s", async (_, wrong, right) => {
    const one = createRunsWorld().container();
    expect((await one.call("/v1/rewards", keyed(wrong))).status).toBeGreaterThanOrEqual(400);
    expect((await one.call("/v1/rewards", keyed(right))).body.rewards).toEqual([1]);
  });

  it("a batch for which there was no worker", async () => {
    const world = createRunsWorld({ settings: { slots: 1 } });
    const one = world.container();
    const hanging = one.send("/v1/rewards", { method: "POST", body: batchOf(["hang"], oneCase) });
    await world.settle();
    await world.clock.pass(1_500);
    const body = batchOf(["right"], { options: { deadline_ms: 2_000 } });
    const refused = await world.container().call("/v1/rewards", keyed(body));
    expect(refused).toMatchObject({ status: 503, body: { code: "no_capacity" } });
    await world.clock.run(one.stop());
    await world.answer(hanging);
    expect((await world.container().call("/v1/rewards", keyed(body))).body.rewards).toEqual([1]);
  });

  it("a batch whose caller went away where that is seen", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const gone = new AbortController();
    const asked = one.app.request("/v1/rewards", {
      method: "POST",
      signal: gone.signal,
      headers: { ...jsonHeaders, "idempotency-key": "step/1" },
      body: JSON.stringify(batchOf(["hang"], oneCase)),
    });
    await world.settle();
    await world.clock.pass(1_500);
    gone.abort();
    await world.answer(Promise.resolve(asked));
    expect((await one.call("/v1/rewards", keyed(batchOf(["right"])))).body.rewards).toEqual([1]);
  });

  it("a cancelled batch", async () => {
    const world = createRunsWorld();
    const [one, other] = [world.container(), world.container()];
    const sent = one.send("/v1/rewards", keyed(batchOf(["hang"], oneCase)));
    await world.settle();
    await world.clock.pass(1_500);
    expect((await other.call("/v1/batches/step%2F1", cancelling)).body).toEqual({
      cancelled: true,
      stopped: 1,
    });
    expect(await world.answer(sent)).toMatchObject({ status: 409, body: { code: "cancelled" } });
    expect((await one.call("/v1/rewards", keyed())).body.rewards).toEqual([1, 0]);
  });
});

describe("cancelling a batch that was answered", () => {
  it("changes nothing, and its answer is there as before", async () => {
    const world = createRunsWorld();
    const one = world.container();
    const first = await one.call("/v1/rewards", keyed());
    const deleted = await one.call("/v1/batches/step%2F1", cancelling);
    expect(deleted).toMatchObject({ status: 200, body: { cancelled: false, stopped: 0 } });
    expect(essence(await one.call("/v1/rewards", keyed()))).toEqual(essence(first));
    expect(executions(world)).toBe(1);
  });
});

describe("the holder of a batch", () => {
  it("keeps it for as long as it works", async () => {
    const world = createRunsWorld();
    const [one, other] = [world.container(), world.container()];
    const first = one.send("/v1/rewards", keyed(batchOf(["hang"], oneCase)));
    await world.settle();
    for (let minute = 0; minute < 5; minute += 1) {
      await world.clock.pass(60_000);
      const refused = await other.send("/v1/rewards", keyed(batchOf(["hang"], oneCase)));
      expect(await refused.json()).toMatchObject({ code: "in_progress" });
    }
    expect(executions(world)).toBe(1);
    await world.clock.run(one.stop());
    await world.answer(first);
  });

  it("is replaced when it died: twenty callers get one answer, from one more run", async () => {
    const world = createRunsWorld();
    const { table, freeze } = freezable(world.table);
    const dead = world.container({ table });
    const survivors = [world.container(), world.container()];
    await survivors[0]?.register("one-worker", 1);
    const body = batchOf(["right", "slow", "crash"], { run_id: "one-worker" });
    dead.send("/v1/rewards", keyed(body)).catch(() => {});
    await world.settle();
    await world.clock.pass(100);
    expect(executions(world)).toBe(1);
    freeze(); // and it never thaws
    const callers = Array.from({ length: 20 }, (_, caller) =>
      insist(world, survivors[caller % 2] as Container, keyed(body)),
    );
    await world.settle();
    const diedAtMs = world.clock.nowMs();
    const answers = await whileTimePasses(world, Promise.all(callers));
    expect(world.clock.nowMs() - diedAtMs).toBeGreaterThan(60_000);
    expect(world.clock.nowMs() - diedAtMs).toBeLessThan(80_000);
    for (const answer of answers) expect(essence(answer)).toEqual(essence(answers[0] as Answer));
    expect(answers[0]?.body.rewards).toEqual([1, 1, 0]);
    expect(executions(world)).toBe(2);
  });

  it.each([
    ["tells nothing of its own when it was frozen and another answered", json],
    ["does not end its stream with an answer of its own", ndjson],
  ])("%s", async (_, accept) => {
    const world = createRunsWorld();
    const { table, freeze, thaw } = freezable(world.table);
    const frozen = world.container({ table });
    const body = batchOf(["slow", "right"]);
    const sent = frozen.send("/v1/rewards", keyed(body, { accept }));
    await world.settle();
    await world.clock.pass(100);
    expect(executions(world)).toBe(1);
    freeze(); // before it can record what it has found
    await world.clock.pass(70_000);
    const winner = await world.container().call("/v1/rewards", keyed(body));
    expect(winner.body.rewards).toEqual([1, 1]);
    thaw();
    const late = await world.answer(sent);
    const last = JSON.parse(late.text.trimEnd().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({ status: 409, code: "in_progress" });
    const again = await frozen.call("/v1/rewards", keyed(body, { accept }));
    expect(essence(again)).toEqual(essence(winner));
  });

  it("stops its programs when it learns that another has its place", async () => {
    const world = createRunsWorld();
    const { table, freeze, thaw } = freezable(world.table);
    const frozen = world.container({ table });
    const sent = frozen.send("/v1/rewards", keyed(batchOf(["hang"], oneCase)));
    await world.settle();
    await world.clock.pass(2_000);
    freeze();
    await world.clock.pass(70_000);
    const other = world.container();
    const next = other.send("/v1/rewards", keyed(batchOf(["hang"], oneCase)));
    await world.settle();
    await world.clock.pass(5_000);
    thaw();
    expect(await world.answer(sent)).toMatchObject({ status: 409, body: { code: "in_progress" } });
    await world.clock.pass(5_000);
    expect(world.hands.running.size).toBe(1);
    await world.clock.run(other.stop());
    expect(await world.answer(next)).toMatchObject({ body: { code: "stopping" } });
  });
});

describe("a table that doesn't take the record of an answer", () => {
  it.each([
    ["for a moment, before the write", "unsent", 2],
    ["for a moment, after the write", "answer_lost", 1],
  ] as const)("%s: the batch is answered all the same, and recorded", async (_, how, times) => {
    const world = createRunsWorld();
    let left: number = times;
    const table = failing(world.table, (operation) =>
      operation === "answer batch" && left-- > 0 ? how : "no",
    );
    const answer = await world.container({ table }).call("/v1/rewards", keyed());
    expect(answer.body.rewards).toEqual([1, 0]);
    expect(essence(await world.container().call("/v1/rewards", keyed()))).toEqual(essence(answer));
    expect(executions(world)).toBe(1);
  });

  it.each([
    ["has not got it after all, and the batch runs again", "unsent", 2],
    ["has got it after all, and it is the answer", "answer_lost", 1],
  ] as const)("for long: the answer is refused; the table %s", async (_, how, ran) => {
    const world = createRunsWorld();
    const table = failing(world.table, (operation) => {
      if (operation === "answer batch") return how;
      return operation === "get" && isAnswered(world) ? "unsent" : "no";
    });
    const refused = await world.container({ table }).call("/v1/rewards", keyed());
    expect(refused).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
    expect(refused.headers.get("retry-after")).not.toBeNull();
    const again = await world.container().call("/v1/rewards", keyed());
    expect(again.body.rewards).toEqual([1, 0]);
    expect(executions(world)).toBe(ran);
  });
});

function isAnswered({ table }: RunsWorld): boolean {
  return table.rows().some(({ st }) => st === "answered");
}
