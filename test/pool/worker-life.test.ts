/** What becomes of workers, and of those who hold them, as the plan's life of their sandboxes comes to its end. */
import { describe, expect, it } from "vitest";
import type { PoolLease } from "../../functions/pool/held-lease.ts";
import { planSweep } from "../../functions/pool/sweep/plan.ts";
import { renewWorker } from "../../functions/pool/sweep/renewals.ts";
import { newSweepLog } from "../../functions/pool/sweep/report.ts";
import type { WorkerEvent } from "../../functions/rewards/ports.ts";
import { createWorld, type World } from "./lease-world.ts";
import { access, present, startMs, testSettings } from "./test-pool.ts";

const settings = { slots: 1 };
const { lifeMs } = testSettings();
const never = new AbortController().signal;

/** The world's renewals: when, and for how long. */
function watchRenewals({ clock, cloud }: World): { readonly atMs: number; readonly ttlMs: number }[] {
  const renewals: { atMs: number; ttlMs: number }[] = [];
  const { renew } = cloud.sandboxes;
  Object.assign(cloud.sandboxes, {
    renew(sandboxId: string, ttlMs: number) {
      renewals.push({ atMs: clock.nowMs() - startMs, ttlMs });
      return renew(sandboxId, ttlMs);
    },
  });
  return renewals;
}

describe("renewals", () => {
  it("by the holder never reach beyond the plan's life, and end with it", async () => {
    const world = createWorld();
    const renewals = watchRenewals(world);
    present(await world.clock.run(world.container({ settings }).acquire()));
    await world.clock.pass(lifeMs + 600_000);
    expect(renewals.length).toBeGreaterThan(5);
    for (const { atMs, ttlMs } of renewals) {
      expect(ttlMs).toBeGreaterThan(0);
      expect(atMs + ttlMs).toBeLessThanOrEqual(lifeMs);
    }
  });

  it.each(["ready", "leased"] as const)("by the sweep are not asked for after it: %s", async (state) => {
    const { clock, cloud, table } = createWorld();
    const renewals = watchRenewals({ clock, cloud } as World);
    const nowMs = startMs + lifeMs;
    const row = {
      ...{ slot: 0, state, fence: 2, generation: 1, sandboxId: "i1", access, supervisorVersion: "v1" },
      ...{
        bornAtMs: startMs,
        ttlAtMs: nowMs - 1_000,
        maxAtMs: nowMs + 200_000,
        leaseUntilMs: nowMs + 60_000,
      },
    };
    const totals = {
      batches: 0,
      samples: 0,
      faults: 0,
      retries: 0,
      workersCreated: 0,
      busyMs: 0,
      idleMs: 0,
      startMs: 0,
    };
    const run = {
      ...{ runId: "run", name: "run", workers: 1, metadata: {}, registeredAtMs: startMs, beatAtMs: nowMs },
      ...{ recordUntilS: nowMs / 1_000 + 600, spentMs: 0, reportedMs: 0, foldedUntil: 0, lanes: {} },
      totals: { ...totals, verdicts: {} as never },
    };
    const demand = { settings: testSettings(settings), runs: [run], slots: [row], nowMs };
    expect(planSweep(demand, { sandboxes: [], askedAtMs: nowMs }).renewals).toEqual([]);
    clock.set(nowMs);
    const ctx = {
      table,
      clock,
      newId: () => "x",
      settings: testSettings(settings),
      sandboxes: cloud.sandboxes,
    };
    expect(await renewWorker(ctx, newSweepLog(), row)).toBe("unsure");
    expect(renewals).toEqual([]);
  });
});

describe("a chunk on a worker whose life ends", () => {
  /** The worker's own clock rings at the chunk's deadline, as the supervisor's does. */
  async function lastChunk(deadlineMs: number) {
    const world = createWorld();
    const { clock, cloud } = world;
    const given: number[] = [];
    Object.assign(cloud.workers, {
      attach: () => ({
        async *execute(chunk: { deadlineMs: number }): AsyncIterable<WorkerEvent> {
          given.push(chunk.deadlineMs);
          await clock.sleep(chunk.deadlineMs);
          yield { kind: "summary", end: "deadline" };
        },
      }),
    });
    const lease = present(await clock.run(world.container({ settings }).acquire()));
    const endsAtMs = lease.livesUntilMs ?? 0;
    await clock.pass(endsAtMs - startMs - 100_000);
    const end = await clock.run(endOf(lease, deadlineMs));
    return { world, lease, given, end, endsAtMs };
  }

  async function endOf(lease: PoolLease, deadlineMs: number): Promise<unknown> {
    try {
      const ends: unknown[] = [];
      const chunk = { chunkId: "c", deadlineMs, programs: [] };
      for await (const event of lease.execute(chunk, never)) ends.push(event);
      return ends.at(-1);
    } catch (error) {
      return error;
    }
  }

  it("has no more time than the worker, and what it leaves was lost by no program", async () => {
    const { given, end, endsAtMs, lease, world } = await lastChunk(500_000);
    expect(given).toEqual([100_000]);
    expect(end).toMatchObject({ code: "worker_lost", isKnownCause: true, retryable: true });
    expect(endsAtMs).toBeLessThan(startMs + lifeMs);
    expect(await world.clock.run(endOf(lease, 500_000))).toMatchObject({ isKnownCause: true });
    expect(given).toHaveLength(1);
    await world.clock.run(lease.release("broken"));
    expect(await world.states()).toEqual(["empty"]);
  });

  it("ends at its own deadline when that comes first", async () => {
    const { given, end } = await lastChunk(90_000);
    expect(given).toEqual([90_000]);
    expect(end).toEqual({ kind: "summary", end: "deadline" });
  });
});

describe("workers that were made together", () => {
  it.each([2, 5, 20])("are neither replaced nor given up in the same minute: %i of them", async (workers) => {
    const world = createWorld();
    const { clock, table } = world;
    const containers = Array.from({ length: workers }, () =>
      world.container({ settings: { slots: workers } }),
    );
    const leases = await clock.run(Promise.all(containers.map((one) => one.acquire({ waitMs: 600_000 }))));
    const madeWithinMs = clock.nowMs() - startMs;
    expect(madeWithinMs).toBeLessThan(100_000);
    const replacedAtMs = table.rows().flatMap(({ max }) => (typeof max === "number" ? [max] : []));
    const givenUpAtMs = leases.map((lease) => present(lease).livesUntilMs ?? 0);
    for (const endsAtMs of [replacedAtMs, givenUpAtMs]) {
      expect(endsAtMs).toHaveLength(workers);
      expect(mostInAMinute(endsAtMs)).toBeLessThanOrEqual(Math.max(1, Math.ceil(workers / 5)));
    }
  });
});

function mostInAMinute(times: readonly number[]): number {
  return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 60_000).length));
}
