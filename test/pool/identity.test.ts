import { expect, it } from "vitest";
import { namePool, rememberPoolId } from "../../functions/pool/identity.ts";
import type { Table } from "../../functions/pool/ports.ts";
import { failing } from "./broken-table.ts";
import { createMemoryTable } from "./memory-table.ts";

it("the pool's id is read once, and again only after a failure", async () => {
  const table = createMemoryTable();
  let failures = 1;
  const shaky = failing(table, () => (failures-- > 0 ? "unsent" : "no"));
  const poolId = rememberPoolId(shaky, () => "pool-1");
  await expect(poolId()).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await Promise.all([poolId(), poolId()])).toEqual(["pool-1", "pool-1"]);
  const before = { ...table.counts };
  expect(await poolId()).toBe("pool-1");
  expect(table.counts).toEqual(before);
});

it("the pool's id is the winner's when a naming gets no answer", async () => {
  const table = createMemoryTable();
  let lost = 1;
  const lossy = failing(table, (verb) => (verb === "name the pool" && lost-- > 0 ? "answer_lost" : "no"));
  const poolId = rememberPoolId(lossy, () => "first");
  await expect(poolId()).rejects.toMatchObject({ code: "store_unavailable" });
  expect(await rememberPoolId(table, () => "second")()).toBe("first");
  expect(await poolId()).toBe("first");
});

it("a pool that has an id is never read without it", async () => {
  const real = createMemoryTable();
  let isCrossed = true;
  const mixedUp: Table = {
    ...real,
    query: async (...asked) => (isCrossed ? [] : real.query(...asked)),
  };
  const { table, poolId } = namePool(mixedUp, () => "pool-1");
  expect(await table.query("pool"), "a new pool has nothing yet").toEqual([]);
  await poolId();
  await expect(table.query("pool")).rejects.toMatchObject({ code: "store_unavailable", retryable: true });
  expect(await table.query("runs")).toEqual([]);
  expect(await table.query("pool", "S#")).toEqual([]);
  isCrossed = false;
  expect(await table.query("pool")).toHaveLength(1);
});
