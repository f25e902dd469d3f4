/** A service that is told to stop: who waits for a batch learns that it is to be sent again, and may do so at once. */
import { describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { failing } from "../pool/broken-table.ts";
import { batchOf, createRunsWorld, type RunsWorld } from "./runs-world.ts";

const ndjson = { accept: "application/x-ndjson" };
type Container = ReturnType<RunsWorld["container"]>;

const asking = (source: string, headers: Record<string, string> = {}) => ({
  method: "POST",
  body: batchOf([source]),
  headers: { "idempotency-key": "a", ...headers },
});

/** Where the batch is when its container is told to stop: its program, and the container that has it. */
interface Place {
  readonly source: string;
  container(world: RunsWorld): Promise<Container>;
}

async function pass(world: RunsWorld, ms: number): Promise<void> {
  await world.settle();
  await world.clock.pass(ms);
}

const places: Readonly<Record<string, Place>> = {
  "has a program that runs": { source: "hang", container: async (world) => world.container() },
  "waits for a worker": {
    source: "right",
    async container(world) {
      const holder = world.container();
      const held = holder.send("/v1/rewards", { method: "POST", body: batchOf(["slow", "hang"]) });
      await pass(world, 1_500);
      void world.clock.sleep(20_000).then(holder.stop);
      held.catch(() => {});
      return world.container();
    },
  },
  "waits for a table that does not answer": {
    source: "right",
    container: async (world) => world.container({ table: failing(world.table, () => "unsent") }),
  },
  "waits for a table that answers slowly": {
    source: "right",
    container: async (world) => world.container({ table: slow(world, 8_000) }),
  },
};

function slow({ table, clock }: RunsWorld, ms: number): Table {
  return {
    ...table,
    async update(...call) {
      await clock.sleep(ms);
      return table.update(...call);
    },
  };
}

const cases = Object.keys(places).flatMap((place) => [
  { place, how: "JSON", headers: {} },
  { place, how: "a stream", headers: ndjson },
]);

describe("a container that is told to stop", () => {
  it.each(cases)(
    "asks who waits for $how to send it again, of a batch that $place",
    async ({ place, headers }) => {
      const { source, container } = places[place] as Place;
      const world = createRunsWorld({ settings: { slots: 1 } });
      const one = await container(world);
      const sent = one.send("/v1/rewards", asking(source, headers));
      await pass(world, 3_000);
      await world.clock.run(one.stop());
      const answer = await world.answer(sent);
      const said =
        "accept" in headers ? JSON.parse(answer.text.trimEnd().split("\n").at(-1) ?? "") : answer.body;
      expect(said).toMatchObject({ status: 503, code: "stopping" });
      if ("accept" in headers) expect(said).toMatchObject({ type: "error", retry_after_s: 2 });
      else expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "2"]);

      const again = await world.container().call("/v1/rewards", asking("right"));
      expect(again).toMatchObject({ status: 200, body: { rewards: [1] } });
    },
  );

  it.each([
    ["with a key", { "idempotency-key": "a" }],
    ["without one", {}],
  ])(
    "gives its workers back, and counts no batch that will be counted when it is sent again: %s",
    async (_, headers) => {
      const world = createRunsWorld();
      const one = world.container();
      await one.register("job-7", 1);
      const body = batchOf(["hang"], { run_id: "job-7" });
      const sent = one.send("/v1/rewards", { method: "POST", body, headers });
      await pass(world, 1_500);
      await world.clock.run(one.stop());
      expect((await world.answer(sent)).status).toBe(503);
      expect(world.hands.running.size).toBe(0);
      expect(world.states()).toEqual(["ready"]);
      const other = world.container();
      const again = batchOf(["right"], { run_id: "job-7" });
      await other.call("/v1/rewards", { method: "POST", body: again, headers });
      const { totals } = (await other.call("/v1/runs/job-7")).body;
      expect(totals).toMatchObject({ batches: 1, samples: 1, faults: 0 });
      expect(totals.worker_seconds).toBeGreaterThan(1); // what it cost was spent
    },
  );

  it("refuses what comes, without asking the table", async () => {
    const world = createRunsWorld();
    let asked = 0;
    const table = failing(world.table, () => {
      asked += 1;
      return "no";
    });
    const one = world.container({ table });
    await world.clock.run(one.stop());
    for (const headers of [{}, ndjson]) {
      const late = await one.call("/v1/rewards", asking("right", headers));
      expect(late).toMatchObject({ status: 503, body: { code: "stopping" } });
      expect(late.headers.get("retry-after")).toBe("2");
    }
    expect(asked).toBe(0);
  });

  it("answers a batch that is graded, and whose record is being written", async () => {
    const world = createRunsWorld();
    let isAnswered = () => {};
    const answering = new Promise<void>((resolve) => {
      isAnswered = resolve;
    });
    const table: Table = {
      ...world.table,
      async update(key, expression, values) {
        if (expression.name === "answer batch") {
          isAnswered();
          await world.clock.sleep(1_000);
        }
        return world.table.update(key, expression, values);
      },
    };
    const one = world.container({ table });
    const sent = one.send("/v1/rewards", asking("right"));
    await world.settle();
    await world.clock.run(answering);
    const stopped = one.stop();
    expect((await world.answer(sent)).body.rewards).toEqual([1]);
    await world.clock.run(stopped);
  });
});
