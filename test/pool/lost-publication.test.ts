/** A publication whose answer gets lost, and what others do with the worker before it is asked for. */
import { describe, expect, it } from "vitest";
import { type CreationContext, createWorker } from "../../functions/pool/creation.ts";
import type { Table } from "../../functions/pool/ports.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import type { Holder } from "../../functions/pool/slots/write.ts";
import { createFakeCloud } from "./fake-cloud.ts";
import { createMemoryTable } from "./memory-table.ts";
import { anna, ben, present, testHandler } from "./test-pool.ts";

/** Creates in slot 0; `between` happens after the publication was applied and before its answer is asked for again. */
async function create(holder: Holder | null, between: (table: Table) => Promise<unknown>) {
  const table = createMemoryTable();
  const handler = testHandler(table);
  const clock = { ...handler.clock, sleep: () => new Promise<void>(() => {}) };
  const cloud = createFakeCloud(clock, 0);
  const losing: Table = {
    ...table,
    async update(key, expression, values) {
      const outcome = await table.update(key, expression, values);
      if (!expression.name.startsWith("publish")) return outcome;
      await between(table);
      return { kind: "refused", retried: true };
    },
  };
  const ctx: CreationContext = {
    ...handler,
    clock,
    table: losing,
    workers: cloud.workers,
    sandboxes: cloud.sandboxes,
    poolId: async () => "pool-1",
    random: () => 0.5,
  };
  const result = await createWorker(ctx, 0, "run", () => holder);
  return { result, cloud, row: present(await table.get({ pk: "pool", sk: "S#000" })) };
}

describe("a worker whose publication got no answer", () => {
  it.each([
    ["free", null, "ready"],
    ["leased", anna, "leased"],
  ])("is ours, published %s, while nobody has taken it", async (_, holder, state) => {
    const { result, cloud } = await create(holder, async () => {});
    expect(result).toMatchObject({ kind: "published", row: { state } });
    expect(cloud.killed).toEqual([]);
  });

  it("is left alone when another has leased it by now", async () => {
    const { result, cloud, row } = await create(null, async (table) =>
      present(await acquireSlot(testHandler(table), 0, ben)),
    );
    expect(result).toEqual({ kind: "not_now" });
    expect(cloud.killed).toEqual([]);
    expect(row).toMatchObject({ st: "leased", hr: ben.runTag });
  });
});
