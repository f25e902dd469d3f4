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

it("what is asked of a named pool's table arrives whole", async () => {
  const real = createMemoryTable();
  const asked: unknown[][] = [];
  const noting: Table = {
    ...real,
    query: (...args) => {
      asked.push(args);
      return real.query(...args);
    },
  };
  const { table, poolId } = namePool(noting, () => "pool-1");
  await poolId();
  const queries: Parameters<Table["query"]>[] = [
    ["pool"],
    ["runs", "R#"],
    ["L#run-1", "", "0001800000000000"],
  ];
  for (const query of queries) await table.query(...query);
  expect(asked).toEqual(queries);
});
