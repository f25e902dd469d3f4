/** What is told to who waits for a worker, and when a creation that failed is tried again. */
import { describe, expect, it } from "vitest";
import type { Fault } from "../../functions/rewards/faults.ts";
import { createWorld } from "./lease-world.ts";
import { present } from "./test-pool.ts";

/** Collects the codes of what is told; null is the end of a trouble. */
function listener() {
  const told: (string | null)[] = [];
  return { told, onTrouble: (trouble: Fault | null) => void told.push(trouble?.code ?? null) };
}

describe("trouble is told while a worker is waited for", () => {
  it("of a table that says nothing, before its own time limit is over, and that it ended", async () => {
    const { clock, table, container } = createWorld();
    let silentMs = 7_000;
    const silent = {
      ...table,
      query: async (pk: string) => {
        await clock.sleep(silentMs);
        silentMs = 0;
        return table.query(pk);
      },
    };
    const { told, onTrouble } = listener();
    const waiting = container({ table: silent }).acquire({ onTrouble });
    await clock.pass(1_499);
    expect(told).toEqual([]);
    await clock.pass(1);
    expect(told).toEqual(["store_unavailable"]);
    await clock.run(waiting);
    expect(told).toEqual(["store_unavailable", null]);
  });

  it("of a creation that takes too long, also at the deadline", async () => {
    const { clock, container } = createWorld({ createMs: 40_000 });
    const { told, onTrouble } = listener();
    const handler = container();
    await expect(clock.run(handler.acquire({ waitMs: 20_000, onTrouble }))).rejects.toMatchObject({
      code: "sandbox_unavailable",
      message: expect.stringContaining("too long"),
    });
    expect(told).toEqual(["sandbox_unavailable"]);
    await clock.run(handler.settled());
  });

  it.each([
    ["refused", "sandbox_unavailable"],
    ["ambiguous", "sandbox_unavailable"],
    ["unproved", "isolation_failed"],
  ] as const)("of a creation that is %s", async (outcome, code) => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push(outcome);
    const { told, onTrouble } = listener();
    present(await clock.run(container().acquire({ onTrouble })));
    expect(told).toEqual([code]);
  });

  it("is none when all workers are busy", async () => {
    const { clock, container } = createWorld();
    const settings = { slots: 1 };
    present(await clock.run(container({ settings }).acquire()));
    const { told, onTrouble } = listener();
    expect(await clock.run(container({ settings }).acquire({ waitMs: 30_000, onTrouble }))).toBeNull();
    expect(told).toEqual([]);
  });
});

describe("a creation that failed", () => {
  it("is not tried again before the provider wants it to be, by any batch of the container", async () => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push("refused");
    cloud.retryAfterMs = 40_000;
    const handler = container();
    const leases = Promise.all([handler.acquire(), handler.acquire()]);
    await clock.pass(39_999);
    expect(cloud.createdAtMs).toHaveLength(1);
    for (const lease of await clock.run(leases)) present(lease);
    expect(Number(cloud.createdAtMs[1]) - Number(cloud.createdAtMs[0])).toBeGreaterThanOrEqual(40_000);
  });

  it("without a sure end does not use up what its batch may have", async () => {
    const { clock, cloud, container, states } = createWorld();
    cloud.script.push("ambiguous", "ambiguous", "ambiguous");
    const demand = { targetWorkers: 1 };
    const lease = present(await clock.run(container({ demand }).acquire({ waitMs: 30_000 })));
    expect(lease.created).toBe(true);
    expect((await states()).sort()).toEqual(["creating", "creating", "creating", "leased"]);
  });

  it("without a sure end is no reason for others to wait longer than a creation takes", async () => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push("ambiguous");
    const demand = { targetWorkers: 1 };
    const creator = container({ demand }).acquire({ waitMs: 1 });
    await expect(clock.run(creator)).rejects.toMatchObject({ code: "sandbox_unavailable" });
    const others = container({ demand });
    expect(await clock.run(others.acquire({ waitMs: 30_000 }))).toBeNull();
    expect(await clock.run(others.acquire({ waitMs: 30_000 }))).toMatchObject({ created: true });
  });

  it("is not all that leaves a batch room: so does a worker that is drained and could not be killed", async () => {
    const { clock, cloud, container, states } = createWorld();
    const handler = container({ demand: { targetWorkers: 1 } });
    cloud.kills = "failed";
    await present(await clock.run(handler.acquire())).release("broken");
    expect(await states()).toEqual(["draining"]);
    expect(present(await clock.run(handler.acquire({ waitMs: 30_000 }))).created).toBe(true);
  });

  it("is remembered until one succeeds", async () => {
    const { clock, cloud, container } = createWorld();
    cloud.script.push("refused");
    const handler = container();
    await expect(clock.run(handler.acquire({ waitMs: 1 }))).rejects.toMatchObject({ name: "Fault" });
    expect(handler.creationFault()).toMatchObject({ code: "sandbox_unavailable" });
    present(await clock.run(handler.acquire()));
    expect(handler.creationFault()).toBeNull();
  });
});
