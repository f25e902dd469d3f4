/** The pool with real workers: what its handlers lease, lose and give back are sandboxes. */
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import { createLeaseSource } from "../../functions/pool/lease-source.ts";
import { plans, poolSettings } from "../../functions/pool/settings.ts";
import { readSlotRow, workerOf } from "../../functions/pool/slot-row.ts";
import { createMemoryTable } from "../pool/memory-table.ts";
import {
  collect,
  doublingChunk,
  factoryFor,
  never,
  newPoolId,
  optionsFor,
  outputsOf,
  startRoomyServer,
  supervisor,
  sweep,
  type TestServer,
} from "./cloud.ts";

let server: TestServer;
const poolId = newPoolId();
beforeAll(async () => {
  server = await startRoomyServer();
});
afterAll(() => server?.stop());
afterEach(async () => {
  await sweep(optionsFor(server), poolId);
});

function newSource(table = createMemoryTable()) {
  let ids = 0;
  return createLeaseSource({
    table,
    clock: systemClock,
    newId: () => `id${String(ids++).padStart(6, "0")}`,
    random: Math.random,
    settings: poolSettings(plans.hobby, { supervisorVersion: supervisor.shortVersion, pollMs: 50 }),
    poolId: async () => poolId,
    workers: factoryFor(optionsFor(server)),
    sandboxes: createE2bSandboxes(optionsFor(server)),
  });
}

it("a worker is created once, used again by another handler, and killed when it is broken", async () => {
  const table = createMemoryTable();
  const demand = { runId: "run", batchId: "batch", runWorkers: 1 };
  const acquire = (source = newSource(table)) =>
    source.forBatch(demand).acquire({ deadlineAtMs: Date.now() + 20_000, signal: never });
  const first = await acquire();
  if (first === null) throw new Error("no worker");
  expect(outputsOf(await collect(first.execute(doublingChunk("a"), never)))).toEqual(["42\n", "8\n"]);
  await first.release("healthy");
  const second = await acquire();
  expect(second).toMatchObject({ workerId: first.workerId, created: false });
  if (second === null) throw new Error("no worker");
  expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  expect(outputsOf(await collect(second.execute(doublingChunk("a"), never)))).toEqual(["42\n", "8\n"]);
  const [row] = table.rows().flatMap((stored) => readSlotRow(stored) ?? []);
  const worker = row === undefined ? null : workerOf(row);
  if (worker === null) throw new Error("no row of a worker");
  const stale = factoryFor(optionsFor(server)).attach(worker);
  await expect(collect(stale.execute(doublingChunk("b"), first.fencingToken, never))).rejects.toMatchObject({
    code: "supervisor_protocol",
    message: expect.stringContaining("stale_token"),
  });
  for (const row of table.rows()) {
    expect(Buffer.byteLength(Object.entries(row).flat().join(""))).toBeLessThan(300);
  }
  await second.release("broken");
  expect(await createE2bSandboxes(optionsFor(server)).list(poolId)).toEqual([]);
});
