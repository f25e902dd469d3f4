/** Who pays for which time of which worker, and what it costs in dollars and in writes. */
import { describe, expect, it } from "vitest";
import { listRates, workersCostUsd } from "../../functions/pool/cost.ts";
import { createLeaseSource } from "../../functions/pool/lease-source.ts";
import { getRun } from "../../functions/pool/runs/read.ts";
import { type RunRow, targetWorkers } from "../../functions/pool/runs/run-row.ts";
import { runProblems } from "../../functions/pool/runs/run-wish.ts";
import { rememberRuns } from "../../functions/pool/runs/target.ts";
import type { SlotRow } from "../../functions/pool/slot-row.ts";
import { finishRun } from "../../functions/pool/sweep/finish-run.ts";
import { splitIdleTime } from "../../functions/pool/sweep/idle-time.ts";
import { stopPool } from "../../functions/pool/sweep/stop-pool.ts";
import { type SweepContext, sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { createBatchNotes } from "./batch-notes.ts";
import { note } from "./runs-contract.ts";
import { createSweepWorld, type SweepWorld } from "./sweep-world.ts";
import { present, startMs } from "./test-pool.ts";

function run(runId: string, workers: number, more: Partial<RunRow> = {}): RunRow {
  const verdicts = {
    passed: 0,
    wrong_output: 0,
    runtime_error: 0,
    signaled: 0,
    time_limit: 0,
    memory_limit: 0,
    output_limit: 0,
  };
  return {
    runId,
    name: runId,
    workers,
    metadata: {},
    registeredAtMs: startMs,
    beatAtMs: startMs,
    recordUntilS: startMs / 1_000 + 604_800,
    totals: {
      batches: 0,
      samples: 0,
      verdicts,
      faults: 0,
      retries: 0,
      workersCreated: 0,
      busyMs: 0,
      idleMs: 0,
      startMs: 0,
    },
    spentMs: 0,
    reportedMs: 0,
    foldedUntil: 0,
    lanes: {},
    ...more,
  };
}

const slot = (number: number, more: Partial<SlotRow> = {}): SlotRow => ({
  slot: number,
  state: "ready",
  fence: 1,
  generation: 1,
  bornAtMs: startMs,
  ...more,
});

describe("the target", () => {
  const finished = run("b", 4, { finishedAtMs: startMs });
  const expired = run("c", 4, { beatAtMs: startMs - 300_000 });
  it.each([
    ["no run", [], 20, 0],
    ["what one wants", [run("a", 3)], 20, 3],
    ["what all want", [run("a", 3), run("b", 4)], 20, 7],
    ["no more than there are slots", [run("a", 12), run("b", 12)], 20, 20],
    ["nothing for finished and expired ones", [run("a", 1), finished, expired], 20, 1],
  ] as const)("is %s", (_, runs, slots, target) => {
    expect(targetWorkers(runs, slots, startMs)).toBe(target);
  });

  it("is read at most every two seconds by one handler, and again after a failure", async () => {
    const world = createSweepWorld();
    let reads = 0;
    let isDown = false;
    const query: SweepWorld["table"]["query"] = (...args) => {
      reads += 1;
      return isDown ? Promise.reject(new Error("down")) : world.table.query(...args);
    };
    const { targetWorkers: target } = rememberRuns(world.context({ table: { ...world.table, query } }), 20);
    await world.register("run", 5);
    expect(await target()).toBe(5);
    await world.register("other", 5);
    expect(await target()).toBe(5);
    await world.clock.pass(2_000);
    isDown = true;
    await expect(target()).rejects.toThrow("down");
    isDown = false;
    expect(await target()).toBe(10);
    expect(reads).toBe(3);
  });
});

describe("a wish", () => {
  const wish = { name: "grpo", workers: 2, metadata: {} };
  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, "v"]));
  it.each([
    ["r1", wish, []],
    ["a.B_c:d~e-9", { ...wish, metadata: pairs(16), workers: 20 }, []],
    ["", wish, [""]],
    ["a/b", wish, [""]],
    ["x".repeat(129), wish, [""]],
    ["r1", { ...wish, name: "n".repeat(201) }, ["/name"]],
    ["r1", { ...wish, workers: 0 }, ["/workers"]],
    ["r1", { ...wish, workers: 21 }, ["/workers"]],
    ["r1", { ...wish, workers: 1.5 }, ["/workers"]],
    ["r1", { ...wish, metadata: pairs(17) }, ["/metadata"]],
    ["r1", { ...wish, metadata: { "a/b": "v".repeat(257) } }, ["/metadata/a~1b"]],
    [
      "?",
      { name: "n".repeat(201), workers: 0, metadata: { "": "" } },
      ["", "/name", "/workers", "/metadata/"],
    ],
  ] as const)("%s %o has its problems at %o", (runId, wished, pointers) => {
    expect(runProblems(runId, wished, 20).map(({ pointer }) => pointer)).toEqual(pointers);
  });
});

describe("dollars", () => {
  it.each([
    [3_600, { vcpus: 2, memoryMib: 512 }, 0.1089],
    [3_600, { vcpus: 1, memoryMib: 1_024 }, 0.0666],
    [1_800, { vcpus: 8, memoryMib: 8_192 }, 0.2664],
    [0, { vcpus: 2, memoryMib: 512 }, 0],
  ])("%i s of %o cost $%d", (seconds, shape, usd) => {
    expect(workersCostUsd(seconds, shape, listRates)).toBeCloseTo(usd, 10);
  });
});

describe("idle time", () => {
  const fresh = { untilMs: startMs, busyMs: 0, heldMs: 0, owedMs: 0 };
  const nowMs = startMs + 60_000;
  const live = (runId: string, workers: number, busyMs = 0) => {
    const { totals, ...rest } = run(runId, workers);
    return { ...rest, totals: { ...totals, busyMs } };
  };

  it.each([
    ["all of it to one run", [slot(0), slot(1)], [live("a", 2)], [["a", 120_000]]],
    [
      "split by wishes",
      [slot(0), slot(1)],
      [live("a", 1), live("b", 3)],
      [
        ["a", 30_000],
        ["b", 90_000],
      ],
    ],
    ["less what finished batches held", [slot(0), slot(1)], [live("a", 2, 50_000)], [["a", 70_000]]],
    [
      "less what is held now",
      [slot(0), slot(1, { state: "leased", lastUsedAtMs: startMs + 10_000 })],
      [live("a", 2)],
      [["a", 70_000]],
    ],
    ["from a worker's birth on", [slot(0, { bornAtMs: startMs + 45_000 })], [live("a", 2)], [["a", 15_000]]],
    [
      "from a run's registration on",
      [slot(0)],
      [live("a", 1), run("b", 1, { registeredAtMs: startMs + 30_000 })],
      [
        ["a", 40_000],
        ["b", 20_000],
      ],
    ],
    ["nothing to runs that are over", [slot(0)], [run("a", 2, { finishedAtMs: startMs })], []],
    [
      "nothing without workers",
      [slot(0, { state: "empty", bornAtMs: undefined as never })],
      [live("a", 2)],
      [],
    ],
  ] as const)("is %s", (_, slots, runs, shares) => {
    const split = splitIdleTime(fresh, { slots, runs, nowMs });
    expect(split.shares.map(({ runId, idleMs }) => [runId, idleMs])).toEqual(shares);
    expect(split.ledger.untilMs).toBe(nowMs);
  });

  it("makes up for what was counted too much before a batch told its time", () => {
    const workers = [slot(0)];
    const first = splitIdleTime(fresh, { slots: workers, runs: [live("a", 1)], nowMs });
    const told = { slots: workers, runs: [live("a", 1, 90_000)], nowMs: nowMs + 60_000 };
    const second = splitIdleTime(first.ledger, told);
    expect(second.shares).toEqual([]);
    expect(second.ledger.owedMs).toBe(-30_000);
    const third = splitIdleTime(second.ledger, { ...told, nowMs: nowMs + 120_000 });
    expect(third.shares).toEqual([{ runId: "a", idleMs: 30_000 }]);
  });

  it("and busy time are together the workers' lives, however two passes overlap", async () => {
    const world = createSweepWorld({ latencyMs: 20, createMs: 1_500 });
    await world.register("run", 2);
    await world.sweepFor(1);
    const noteBatch = createBatchNotes(world.context());
    const source = createLeaseSource(world.context());
    const signal = new AbortController().signal;
    for (let batch = 0; batch < 12; batch += 1) {
      const beganAtMs = world.clock.nowMs();
      const deadlineAtMs = beganAtMs + 30_000;
      const acquire = source
        .forBatch({ runId: "run", batchId: `${batch}` })
        .acquire({ deadlineAtMs, signal });
      const lease = present(await world.clock.run(acquire));
      await world.clock.pass(35_000);
      await world.clock.run(lease.release("healthy"));
      const busyMs = world.clock.nowMs() - lease.leasedAtMs;
      await world.clock.run(noteBatch("run", { ...note, busyMs }));
      await world.clock.pass(11_000);
      const deadline = { deadlineAtMs: world.clock.nowMs() + 50_000 };
      await world.clock.run(Promise.all([1, 2].map(() => sweepPool(world.context(), deadline))));
    }
    const lives = [...world.cloud.alive.values()].map(({ startedAtMs }) => startedAtMs);
    const finish = await world.clock.run(finishRun(world.context(), "run"));
    if (finish.kind !== "finished") throw new Error("not finished");
    const { busyMs, idleMs, batches } = finish.run.totals;
    const livedMs = lives.reduce((sum, bornAtMs) => sum + (finish.run.finishedAtMs ?? 0) - bornAtMs, 0);
    expect(batches).toBe(12);
    expect(busyMs).toBeGreaterThan(12 * 35_000);
    expect(Math.abs(busyMs + idleMs - livedMs)).toBeLessThan(2_000);
    console.log(`lived ${livedMs} ms, busy ${busyMs} ms, idle ${idleMs} ms`);
  });
});

describe("writes to the table", () => {
  it("are two per leased worker and one per batch, over 1,000 batches", async () => {
    const world = createSweepWorld();
    await world.register("run", 4);
    await world.sweep();
    const ctx = world.context();
    const source = createLeaseSource(ctx);
    const noteBatch = createBatchNotes(ctx);
    const signal = new AbortController().signal;
    const lease = () =>
      source.forBatch({ runId: "run", batchId: "b" }).acquire({ deadlineAtMs: Infinity, signal });
    const before = { ...world.table.counts };
    let leased = 0;
    const work = async () => {
      for (let batch = 0; batch < 1_000; batch += 1) {
        const workers = await Promise.all(Array.from({ length: 1 + (batch % 4) }, lease));
        leased += workers.length;
        await Promise.all(workers.map((worker) => present(worker).release("healthy")));
        await noteBatch("run", note);
      }
    };
    await world.clock.run(work());
    const writes = world.table.counts.writes - before.writes;
    console.log(
      `1,000 batches on ${leased} leased workers: ${writes} writes, of which refused ${world.table.counts.refusals - before.refusals}`,
    );
    expect(writes).toBeLessThanOrEqual(2 * leased + 1_000 + 10);
    expect((await getRun(ctx, "run"))?.totals.batches).toBe(1_000);
  });
});

describe("queries of runs' ledgers", () => {
  it.each([
    // For the idle time of each, and for the totals of the one that is told.
    ["finish", 4, (ctx: SweepContext) => finishRun(ctx, "one")],
    ["stop", 0, (ctx: SweepContext) => stopPool(ctx, { deadlineAtMs: ctx.clock.nowMs() + 60_000 })],
  ] as const)("are no more when a %s looks again and again: %i", async (_, most, end) => {
    const world = createSweepWorld();
    for (const runId of ["one", "two", "three"]) await world.register(runId, 1);
    await world.sweep();
    const asked: string[] = [];
    const query: SweepWorld["table"]["query"] = (...args) => {
      asked.push(args[0]);
      return world.table.query(...args);
    };
    await world.clock.run<unknown>(end(world.context({ table: { ...world.table, query } })));
    expect(asked.filter((pk) => pk === "pool").length).toBeGreaterThan(1);
    expect(asked.filter((pk) => pk.startsWith("L#"))).toHaveLength(most);
  });
});
