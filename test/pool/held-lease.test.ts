import { describe, expect, it } from "vitest";
import type { PoolLease } from "../../functions/pool/held-lease.ts";
import type { WorkerEvent } from "../../functions/rewards/ports.ts";
import { failing } from "./broken-table.ts";
import { someChunk } from "./fake-cloud.ts";
import { createWorld } from "./lease-world.ts";
import { present, startMs } from "./test-pool.ts";

const settings = { slots: 1 };
const never = new AbortController().signal;

/** Works until the stream ends; how it ended. */
async function work(lease: PoolLease, signal = never): Promise<string> {
  const events: WorkerEvent[] = [];
  try {
    for await (const event of lease.execute(someChunk, signal)) events.push(event);
    return "ended";
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : String(error);
  }
}

describe("while a lease is held", () => {
  it("nobody else gets the worker, for as long as it takes", async () => {
    const { clock, container } = createWorld();
    const lease = present(await clock.run(container({ settings }).acquire()));
    const waiting = container({ settings }).acquire({ waitMs: 840_000 });
    expect(await clock.run(waiting)).toBeNull();
    expect(lease.lost.aborted).toBe(false);
  });

  it("its sandbox is renewed when nobody else does it", async () => {
    const { clock, cloud, table, container } = createWorld();
    const renewedAtMs: number[] = [];
    const { renew } = cloud.sandboxes;
    Object.assign(cloud.sandboxes, {
      renew: (id: string, ttlMs: number) => {
        renewedAtMs.push(clock.nowMs() - startMs);
        return renew(id, ttlMs);
      },
    });
    present(await clock.run(container({ settings }).acquire()));
    await clock.pass(840_000);
    expect(renewedAtMs).toEqual([300_000, 600_000]);
    const [row] = table.rows().filter(({ sk }) => sk === "S#000");
    expect(row?.ttl).toBe(startMs + 1_200_000);
  });

  it("extensions without an answer are tried again, and the work goes on", async () => {
    const { clock, table, container } = createWorld();
    let isDown = false;
    const shaky = failing(table, () => (isDown ? "unsent" : "no"));
    const lease = present(await clock.run(container({ settings, table: shaky }).acquire()));
    isDown = true;
    await clock.pass(50_000);
    isDown = false;
    await clock.pass(5_000);
    expect(lease.lost.aborted).toBe(false);
    const [row] = table.rows().filter(({ sk }) => sk === "S#000");
    expect(row?.lu).toBeGreaterThan(startMs + 110_000);
  });

  it("its worker is told the lease's fence", async () => {
    const { clock, cloud, container } = createWorld();
    const lease = present(await clock.run(container({ settings }).acquire()));
    const stop = new AbortController();
    const working = work(lease, stop.signal);
    await clock.pass(12_000);
    stop.abort();
    expect(await clock.run(working)).toBe("ended");
    expect(cloud.started).toMatchObject([{ sandboxId: lease.workerId, fencingToken: lease.fencingToken }]);
  });
});

describe("a holder that was frozen and overtaken", () => {
  /** Thaws when another has the worker. */
  async function overtaken() {
    const world = createWorld();
    const { clock, table, container } = world;
    let isFrozen = false;
    const frozen = failing(table, () => (isFrozen ? "unsent" : "no"));
    const stale = present(await clock.run(container({ settings, table: frozen }).acquire()));
    const working = work(stale);
    await clock.pass(1);
    isFrozen = true;
    const lease = present(await clock.run(container({ settings }).acquire({ waitMs: 120_000 })));
    isFrozen = false;
    return { ...world, stale, working, lease };
  }

  it("stops its work as a lost worker's", async () => {
    const { clock, cloud, stale, working } = await overtaken();
    expect(await clock.run(working)).toBe("worker_lost");
    expect(stale.lost.aborted).toBe(true);
    expect(cloud.started[0]?.signal.aborted).toBe(true);
  });

  it("starts no more work, even before its next extension", async () => {
    const { clock, cloud, stale } = await overtaken();
    const before = cloud.started.length;
    expect(await clock.run(work(stale))).toBe("worker_lost");
    expect(cloud.started).toHaveLength(before);
  });

  it.each(["healthy", "broken"] as const)(
    "can't take the worker from its new holder: %s",
    async (condition) => {
      const { clock, cloud, events, states, stale, lease } = await overtaken();
      await clock.run(stale.release(condition));
      expect(events.at(-1)).toEqual({ kind: "released", slot: stale.slot, how: "lost" });
      expect(await states()).toEqual(["leased"]);
      expect(cloud.killed).toEqual([]);
      await lease.release("healthy");
      expect(await states()).toEqual(["ready"]);
    },
  );
});

describe("giving a worker back", () => {
  it.each([
    ["a healthy one is free again", "healthy", 0, "done", ["ready"], 0],
    ["a broken one is killed and its slot emptied at once", "broken", 0, "done", ["empty"], 1],
    ["one near its end is not used again", "healthy", 3_000_000, "done", ["empty"], 1],
    ["one that can't be killed leaves its slot to the sweep", "broken", 0, "failed", ["draining"], 2],
  ] as const)("%s", async (_, condition, afterMs, kills, expected, killed) => {
    const { clock, cloud, container, states } = createWorld();
    const lease = present(await clock.run(container({ settings }).acquire()));
    await clock.pass(afterMs);
    cloud.kills = kills;
    await clock.run(lease.release(condition));
    expect(await states()).toEqual(expected);
    expect(cloud.killed).toHaveLength(killed);
  });

  it("happens once, however often it is asked for", async () => {
    const { clock, table, events, container } = createWorld();
    const lease = present(await clock.run(container({ settings }).acquire()));
    const before = table.counts.writes;
    await clock.run(
      Promise.all([lease.release("healthy"), lease.release("broken"), lease.release("healthy")]),
    );
    expect(table.counts.writes - before).toBe(1);
    expect(events.filter(({ kind }) => kind === "released")).toHaveLength(1);
  });

  it("is the end of its work", async () => {
    const { clock, container } = createWorld();
    const lease = present(await clock.run(container({ settings }).acquire()));
    await clock.run(lease.release("healthy"));
    expect(await clock.run(work(lease))).toContain("was given back");
  });

  it("never throws, and the lease ends by itself when the store is down", async () => {
    const { clock, table, container } = createWorld();
    let isDown = false;
    const shaky = failing(table, () => (isDown ? "unsent" : "no"));
    const lease = present(await clock.run(container({ settings, table: shaky }).acquire()));
    isDown = true;
    await clock.run(lease.release("healthy"));
    const next = present(await clock.run(container({ settings }).acquire({ waitMs: 120_000 })));
    expect(next.workerId).toBe(lease.workerId);
  });

  it.each([1, 2, 3, 4, 5, 6])("is no loss for an extension that it overtakes (seed %i)", async (seed) => {
    const { clock, container } = createWorld({ latencyMs: 400, seed });
    const lease = present(await clock.run(container({ settings }).acquire()));
    await clock.pass(20_010); // the extension is on its way
    const given = lease.release("healthy");
    await clock.pass(2_000);
    await given;
    expect(lease.lost.aborted).toBe(false);
  });
});
