/** How long a batch waits to be let in when the table does not answer, and what its caller hears meanwhile. */
import { describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { failing } from "../pool/broken-table.ts";
import { batchOf, createRunsWorld, type RunsWorld } from "./runs-world.ts";
import { jsonHeaders } from "./test-app.ts";

const ndjson = { accept: "application/x-ndjson" };
const longestGapMs = 10_000;
type Container = ReturnType<RunsWorld["container"]>;
type Line = Readonly<Record<string, unknown>>;

const asking = (headers: Record<string, string> = {}, more = {}) => ({
  method: "POST",
  body: batchOf(["right"], more),
  headers,
});

/** A table that doesn't answer while `isAway`: it refuses each call at once, or never settles any. */
function unreachable({ table, clock }: RunsWorld, how: "refuses" | "hangs") {
  const state = { isAway: true, asked: 0, table };
  const refusing = failing(table, () => {
    state.asked += 1;
    return state.isAway ? "unsent" : "no";
  });
  const meet = async () => {
    state.asked += 1;
    while (state.isAway) await clock.sleep(1_000);
  };
  const hanging: Table = {
    get: (...call) => meet().then(() => table.get(...call)),
    query: (...call) => meet().then(() => table.query(...call)),
    update: (...call) => meet().then(() => table.update(...call)),
  };
  state.table = (how === "refuses" ? refusing : hanging) as typeof table;
  return state;
}

/** A table each of whose calls takes so long. */
function slow({ table, clock }: RunsWorld, ms: number): Table {
  const late = async <Value>(call: () => Promise<Value>) => {
    await clock.sleep(ms);
    return call();
  };
  return {
    get: (...call) => late(() => table.get(...call)),
    query: (...call) => late(() => table.query(...call)),
    update: (...call) => late(() => table.update(...call)),
  };
}

/** What a caller hears, and when, counted from when it asked. */
function listen(world: RunsWorld, container: Container, headers: Record<string, string> = {}) {
  const startMs = world.clock.nowMs();
  const heard = {
    status: 0,
    headersAtMs: Number.NaN,
    lines: [] as Line[],
    atMs: [] as number[],
    isOver: false,
  };
  const listening = (async () => {
    const answer = await container.send("/v1/rewards", asking({ ...ndjson, ...headers }));
    heard.status = answer.status;
    heard.headersAtMs = world.clock.nowMs() - startMs;
    const decoder = new TextDecoder();
    for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) {
      heard.atMs.push(world.clock.nowMs() - startMs);
      const text = decoder.decode(piece).trimEnd();
      heard.lines.push(...text.split("\n").map((line) => JSON.parse(line) as Line));
    }
    heard.isOver = true;
  })();
  return { heard, listening };
}

function longestSilenceMs({ headersAtMs, atMs }: { headersAtMs: number; atMs: readonly number[] }): number {
  const times = [0, headersAtMs, ...atMs];
  return Math.max(...times.slice(1).map((at, index) => at - (times[index] ?? 0)));
}

describe.each(["refuses", "hangs"] as const)("while the table %s", (how) => {
  it("a stream begins, has a line every 10 s, and goes on when the table is back", async () => {
    const world = createRunsWorld();
    const table = unreachable(world, how);
    const { heard, listening } = listen(world, world.container(table));
    await world.settle();
    await world.clock.pass(45_000);
    expect(heard).toMatchObject({ status: 200, isOver: false });
    expect(heard.headersAtMs).toBeLessThanOrEqual(1_000);
    table.isAway = false;
    await world.clock.run(listening);
    expect(heard.lines.at(-1)).toMatchObject({ type: "summary", rewards: [1] });
    expect(longestSilenceMs(heard)).toBeLessThan(longestGapMs);
  });

  it("a stream says after a minute that it must be sent again", async () => {
    const world = createRunsWorld();
    const table = unreachable(world, how);
    const { heard, listening } = listen(world, world.container(table), { "idempotency-key": "a" });
    await world.settle();
    await world.clock.pass(60_000);
    await world.settle();
    expect(heard.isOver).toBe(true);
    const told = { type: "error", status: 503, code: "store_unavailable", retry_after_s: 2 };
    expect(heard.lines.at(-1)).toMatchObject(told);
    expect(longestSilenceMs(heard)).toBeLessThan(longestGapMs);
    table.isAway = false;
    await listening;
  });

  it("who wants JSON is told within 15 s, and what came through after all is over when it is sent again", async () => {
    const world = createRunsWorld();
    const table = unreachable(world, how);
    const one = world.container(table);
    const startMs = world.clock.nowMs();
    const refused = await one.call("/v1/rewards", asking({ "idempotency-key": "a" }));
    expect(refused).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
    expect(refused.headers.get("retry-after")).toBe("2");
    expect(world.clock.nowMs() - startMs).toBeLessThanOrEqual(15_000);
    table.isAway = false;
    await world.clock.pass(1_000); // what hung has come through
    const again = await world.container().call("/v1/rewards", asking({ "idempotency-key": "a" }));
    expect(again).toMatchObject({ status: 200, body: { rewards: [1] } });
    expect(world.hands.log).toHaveLength(1);
  });

  it("nothing is asked any more for a caller that has gone", async () => {
    const world = createRunsWorld();
    const table = unreachable(world, how);
    const gone = new AbortController();
    const body = JSON.stringify(batchOf(["right"]));
    const init = { method: "POST", headers: { ...jsonHeaders, ...ndjson }, body, signal: gone.signal };
    const answer = Promise.resolve(world.container(table).app.request("/v1/rewards", init));
    await world.settle();
    await world.clock.pass(20_000);
    const reader = (await answer).body?.getReader();
    await reader?.cancel();
    await world.settle();
    const { asked } = table;
    table.isAway = false;
    await world.clock.pass(90_000);
    expect(table.asked).toBeLessThanOrEqual(asked + 1); // what hung may have had a second part
    expect(world.hands.log).toEqual([]);
    expect(world.clock.sleepers()).toBe(0);
  });
});

/** What the service says of the batch with key `a` in a world prepared for it. */
const refusals: readonly [string, number, (world: RunsWorld) => Promise<Record<string, unknown>>][] = [
  ["run_not_found", 404, async () => ({ run_id: "nobody" })],
  [
    "run_finished",
    409,
    async (world) => {
      const one = world.container();
      await one.register("job-7");
      await one.call("/v1/runs/job-7", { method: "DELETE" });
      return { run_id: "job-7" };
    },
  ],
  [
    "in_progress",
    409,
    async (world) => {
      void world
        .container()
        .send("/v1/rewards", { ...asking({ "idempotency-key": "a" }), body: batchOf(["hang"]) });
      await world.settle();
      await world.clock.pass(1_500);
      return { ...batchOf(["hang"]) };
    },
  ],
  [
    "idempotency_mismatch",
    422,
    async (world) => {
      await world.container().call("/v1/rewards", asking({ "idempotency-key": "a" }));
      return { options: { detail: "output" } };
    },
  ],
];

describe("a stream that is refused", () => {
  it.each(refusals)("at once has the status of %s", async (code, status, prepare) => {
    const world = createRunsWorld();
    const more = await prepare(world);
    const one = world.container({ table: slow(world, 100) });
    const refused = await one.call("/v1/rewards", asking({ ...ndjson, "idempotency-key": "a" }, more));
    expect(refused).toMatchObject({ status, body: { status, code } });
  });

  it.each(refusals)("late has %s as its last line", async (code, status, prepare) => {
    const world = createRunsWorld();
    const more = await prepare(world);
    const one = world.container({ table: slow(world, 4_000) });
    const answer = await one.call("/v1/rewards", asking({ ...ndjson, "idempotency-key": "a" }, more));
    expect(answer.status).toBe(200);
    const lines = answer.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines[0]).toEqual({ type: "progress", done: 0, total: 1 });
    expect(lines.at(-1)).toMatchObject({ type: "error", status, code });
  });

  it("is none when the record answers late", async () => {
    const world = createRunsWorld();
    const first = await world.container().call("/v1/rewards", asking({ "idempotency-key": "a" }));
    const one = world.container({ table: slow(world, 4_000) });
    const again = await one.call("/v1/rewards", asking({ ...ndjson, "idempotency-key": "a" }));
    const lines = again.text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(lines[0]).toMatchObject({ type: "progress" });
    expect(lines.at(-1)).toMatchObject({ type: "summary", rewards: [1], usage: first.body.usage });
    expect(world.hands.log).toHaveLength(1);
  });
});

describe("a batch that is sent again while its first attempt waits for the table", () => {
  it("is told by the same process that the first is under way, and runs once", async () => {
    const world = createRunsWorld();
    const table = unreachable(world, "refuses");
    const one = world.container(table);
    const first = listen(world, one, { "idempotency-key": "a" });
    await world.settle();
    await world.clock.pass(20_000);
    const { asked } = table;
    const second = await one.call("/v1/rewards", asking({ ...ndjson, "idempotency-key": "a" }));
    expect(second).toMatchObject({ status: 409, body: { code: "in_progress" } });
    expect(table.asked).toBe(asked);
    const other = { ...asking({ ...ndjson, "idempotency-key": "a" }), body: batchOf(["wrong"]) };
    expect((await one.call("/v1/rewards", other)).body.code).toBe("idempotency_mismatch");
    table.isAway = false;
    await world.clock.run(first.listening);
    expect(first.heard.lines.at(-1)).toMatchObject({ type: "summary", rewards: [1] });
    expect(world.hands.log).toHaveLength(1);
  });

  it("runs once, also when two processes wait for the table", async () => {
    const world = createRunsWorld();
    const table = unreachable(world, "refuses");
    const both = [world.container(table), world.container(table)].map((container) =>
      listen(world, container, { "idempotency-key": "a" }),
    );
    await world.settle();
    await world.clock.pass(20_000);
    table.isAway = false;
    await world.clock.run(Promise.all(both.map(({ listening }) => listening)));
    const ends = both.map(({ heard }) => heard.lines.at(-1)?.code ?? heard.lines.at(-1)?.rewards);
    expect(ends).toContainEqual([1]);
    for (const end of ends) expect([[1], "in_progress"]).toContainEqual(end); // or is answered from the first's record
    expect(world.hands.log).toHaveLength(1);
  });
});

describe("a batch that is cancelled while it is let in", () => {
  it("ends, and runs nothing", async () => {
    const world = createRunsWorld();
    let isAway = true;
    const table = failing(world.table, (operation) =>
      isAway && operation !== "begin batch" ? "unsent" : "no",
    );
    const { heard, listening } = listen(world, world.container({ table }), { "idempotency-key": "a" });
    await world.settle();
    await world.clock.pass(5_000);
    const deleted = await world.container().call("/v1/batches/a", { method: "DELETE" });
    expect(deleted.body).toEqual({ cancelled: true, stopped: 0 });
    isAway = false;
    await world.clock.run(listening);
    expect(heard.lines.at(-1)).toMatchObject({ type: "error", status: 409, code: "cancelled" });
    expect(world.hands.log).toEqual([]);
  });
});

describe("a batch that has its record, and whose table falls silent then", () => {
  it("is refused within 15 s to who wants JSON, and is over once the table answers", async () => {
    const world = createRunsWorld();
    const table = unreachable(world, "hangs");
    const silentAfterBegin: Table = {
      ...table.table,
      update: (key, expression, values) =>
        (expression.name === "begin batch" ? world.table : table.table).update(key, expression, values),
    };
    const one = world.container({ table: silentAfterBegin });
    await world.container().register("job-7");
    const startMs = world.clock.nowMs();
    const refused = await one.call("/v1/rewards", asking({ "idempotency-key": "a" }, { run_id: "job-7" }));
    expect(refused).toMatchObject({ status: 503, body: { code: "store_unavailable" } });
    expect(world.clock.nowMs() - startMs).toBeLessThanOrEqual(15_000);
    let hasStopped = false;
    const stopped = one.stop().then(() => {
      hasStopped = true;
    });
    await world.clock.pass(5_000);
    expect(hasStopped, "its record is not over yet").toBe(false);
    table.isAway = false;
    await world.clock.run(stopped);
    const again = await world
      .container()
      .call("/v1/rewards", asking({ "idempotency-key": "a" }, { run_id: "job-7" }));
    expect(again).toMatchObject({ status: 200, body: { rewards: [1] } });
  });
});
