/** The sweep over DynamoDB's protocol, in real time at a quick pace. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import { readPool } from "../../functions/pool/pool-view.ts";
import { registerRun } from "../../functions/pool/runs/register.ts";
import { finishRun } from "../../functions/pool/sweep/finish-run.ts";
import { type SweepContext, sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { createBatchNotes } from "./batch-notes.ts";
import { openDynalite } from "./dynalite-table.ts";
import { createFakeCloud, type FakeCloud } from "./fake-cloud.ts";
import { note } from "./runs-contract.ts";
import { testSettings } from "./test-pool.ts";

let opened: Awaited<ReturnType<typeof openDynalite>>;
let cloud: FakeCloud;
let ctx: SweepContext;
let ids = 0;

beforeAll(async () => {
  opened = await openDynalite();
});
afterAll(() => opened.close());
beforeEach(async () => {
  cloud = createFakeCloud(systemClock, 0);
  ctx = {
    table: await opened.fresh(),
    clock: systemClock,
    newId: () => `n${(ids++).toString(36).padStart(7, "0")}`,
    random: Math.random,
    settings: testSettings({ createIntervalMs: 5 }),
    workers: cloud.workers,
    sandboxes: cloud.sandboxes,
    poolId: async () => "pool-1",
  };
});

const sweep = () => sweepPool(ctx, { deadlineAtMs: systemClock.nowMs() + 30_000 });

it("two passes at once create up to the target, kill exactly the orphans, and share idle time once", async () => {
  await registerRun(ctx, "run", { name: "run", workers: 6, metadata: {} });
  const first = await Promise.all([sweep(), sweep()]);
  expect(first.map(({ faults }) => faults)).toEqual([[], []]);
  await sweep(); // at this pace both may have created the last one
  expect(cloud.alive.size).toBe(6);
  const workers = [...cloud.alive.keys()];
  for (let n = 0; n < 10; n += 1) {
    const meta = { poolId: "pool-1", slot: n, generation: 0 };
    cloud.alive.set(`orphan${n}`, { ...meta, sandboxId: `orphan${n}`, startedAtMs: 0 });
  }
  const reports = await Promise.all([sweep(), sweep()]);
  expect(reports.map(({ faults }) => faults)).toEqual([[], []]);
  expect([...cloud.alive.keys()]).toEqual(workers);
  const bornAtMs = (await readPool(ctx)).slots.flatMap((row) => row.bornAtMs ?? []);
  await createBatchNotes(ctx)("run", { ...note, busyMs: 0 });
  const finish = await finishRun(ctx, "run");
  expect(finish).toMatchObject({ kind: "finished", remainingSandboxes: [], faults: [] });
  expect(cloud.alive.size).toBe(0);
  if (finish.kind !== "finished") throw new Error("not finished");
  const { finishedAtMs = 0, totals } = finish.run;
  const livedMs = bornAtMs.reduce((sum, atMs) => sum + finishedAtMs - atMs, 0);
  // The seventh worker that there may have been for a moment is in it as well.
  expect(totals.idleMs).toBeGreaterThan(0);
  expect(totals.idleMs).toBeLessThan(livedMs * 1.5 + 1_000);
  expect(totals.batches).toBe(1);
});
