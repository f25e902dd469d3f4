/** What it costs a batch to ask for all its workers at once. */
import { describe, expect, it } from "vitest";
import { createWorld } from "./lease-world.ts";
import { present, startMs } from "./test-pool.ts";

const workers = 100;
const settings = { slots: workers, createIntervalMs: 10 };

/** So many free workers, and what the table has counted when they are there. */
async function readyPool(latencyMs: number) {
  const world = createWorld({ latencyMs });
  const { clock, table } = world;
  const maker = world.container({ settings });
  const made = await clock.run(Promise.all(Array.from({ length: workers }, () => maker.acquire())));
  await clock.run(Promise.all(made.map((lease) => present(lease).release("healthy"))));
  await clock.pass(90_000);
  return { ...world, maker, counts: { ...table.counts } };
}

describe("a hundred workers, asked for side by side", () => {
  it.each([
    ["a container that knows nothing of the pool: one read", "new", 1],
    ["the container that had them before: none", "same", 0],
  ] as const)("are had in less than half a second by %s", async (_, which, reads) => {
    const { clock, table, maker, counts, container } = await readyPool(40);
    const handler = which === "new" ? container({ settings }) : maker;
    const startedAtMs = clock.nowMs();
    const leases = await clock.run(Promise.all(Array.from({ length: workers }, () => handler.acquire())));
    expect(new Set(leases.map((lease) => present(lease).workerId)).size).toBe(workers);
    expect(clock.nowMs() - startedAtMs).toBeLessThan(500);
    expect(table.counts).toEqual({
      ...counts,
      writes: counts.writes + workers,
      queries: counts.queries + reads,
    });
  });

  it("are shared by two containers that come together, with few collisions", async () => {
    const { clock, table, counts, container } = await readyPool(40);
    const startedAtMs = clock.nowMs();
    const handlers = [container({ settings }), container({ settings })];
    const asked = handlers.flatMap((handler) => Array.from({ length: workers / 2 }, () => handler.acquire()));
    const leases = await clock.run(Promise.all(asked));
    expect(new Set(leases.map((lease) => present(lease).workerId)).size).toBe(workers);
    const refused = table.counts.refusals - counts.refusals;
    console.log(`two containers: ${refused} refused of ${table.counts.writes - counts.writes} writes`);
    expect(refused).toBeLessThan(workers);
    expect(clock.nowMs() - startedAtMs).toBeLessThan(3_000);
  });

  it("no more than the run may hold, though all look at the same moment's pool", async () => {
    const { clock, container, counts, table } = await readyPool(0);
    const handler = container({ settings, demand: { runWorkers: 7 } });
    const asked = Array.from({ length: 20 }, (_, n) =>
      handler.acquire({ waitMs: 5_000, demand: { batchId: `b${n % 2}` } }),
    );
    const leases = await clock.run(Promise.all(asked));
    expect(leases.filter((lease) => lease !== null)).toHaveLength(7);
    expect(table.counts.refusals).toBe(counts.refusals);
    expect(clock.nowMs()).toBeGreaterThan(startMs);
  });
});
