/** A free worker is published, the answer gets lost, and another leases the worker before the creator looks. */
import { createWorker } from "../../functions/pool/creation.ts";
import type { Table } from "../../functions/pool/ports.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { createFakeCloud } from "../pool/fake-cloud.ts";
import { createMemoryTable } from "../pool/memory-table.ts";
import { ben, testHandler } from "../pool/test-pool.ts";

/** What the creator makes of it, and which sandboxes it kills. */
export async function losePublication(): Promise<{ kind: string; killed: number }> {
  const table = createMemoryTable();
  const handler = testHandler(table);
  const clock = { ...handler.clock, sleep: () => new Promise<void>(() => {}) };
  const cloud = createFakeCloud(clock, 0);
  const losing: Table = {
    ...table,
    async update(key, expression, values) {
      const outcome = await table.update(key, expression, values);
      if (expression.name !== "publish ready") return outcome;
      await acquireSlot(testHandler(table), 0, ben);
      return { kind: "refused", retried: true };
    },
  };
  const parts = { workers: cloud.workers, sandboxes: cloud.sandboxes, poolId: async () => "pool-1" };
  const ctx = { ...handler, ...parts, clock, table: losing, random: () => 0.5 };
  const { kind } = await createWorker(ctx, 0, "run", () => null);
  return { kind, killed: cloud.killed.length };
}
