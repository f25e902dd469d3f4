/** Recorded answers of any length, in the embedded table over HTTP. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerLimitBytes, partBytes } from "../../functions/pool/batches/answer-parts.ts";
import { batchColumns, batchKeyOf } from "../../functions/pool/batches/batch-record.ts";
import { beginBatch } from "../../functions/pool/batches/begin-batch.ts";
import { answerBatch } from "../../functions/pool/batches/end-batch.ts";
import type { RowKey, StoredRow, Table } from "../../functions/pool/ports.ts";
import { begun, key, overtaken, takeOverAtMs } from "./batch-scenes.ts";
import { failing } from "./broken-table.ts";
import { openDynalite } from "./dynalite-table.ts";
import { rowBytes } from "./memory-table.ts";
import { startMs, testHandler } from "./test-pool.ts";

let dynalite: Awaited<ReturnType<typeof openDynalite>>;

beforeAll(async () => {
  dynalite = await openDynalite();
});
afterAll(() => dynalite.close());

/** DynamoDB's limit on one item. */
const itemLimitBytes = 400 * 1_024;
const setA = { name: "set", update: "SET #a = :a", clauses: [], columns: { "#a": "a" } };

/** The table, and every row that was written to it. */
async function watchedTable() {
  const table = await dynalite.fresh();
  const written: StoredRow[] = [];
  const watched: Table = {
    ...table,
    async update(...call) {
      const outcome = await table.update(...call);
      if (outcome.kind === "applied") written.push(outcome.row);
      return outcome;
    },
  };
  return { table: watched, written };
}

describe("a recorded answer", () => {
  it.each([
    ["a few bytes", 20, 1],
    ["a whole part", partBytes, 1],
    ["a byte more", partBytes + 1, 2],
    ["all that is allowed", answerLimitBytes, 16],
  ])("of %s comes back as it was, from items that are allowed", async (_, bytes, rows) => {
    const { table, written } = await watchedTable();
    const ctx = testHandler(table);
    const answer = randomBytes(bytes);
    expect(await answerBatch(ctx, await begun(ctx), answer)).toBe(true);
    const beginning = await beginBatch(testHandler(table).at(1_000), key);
    expect(beginning.kind === "answered" && Buffer.compare(beginning.answer, answer)).toBe(0);
    expect(written).toHaveLength(1 + rows);
    for (const row of written) {
      expect(rowBytes(row)).toBeLessThan(0.75 * itemLimitBytes);
      expect(row.expiresAtS).toBeGreaterThanOrEqual(startMs / 1_000 + 3_600);
    }
  });

  it("would not fit into one item", async () => {
    const table = await dynalite.fresh();
    const write = (bytes: number) =>
      table.update({ pk: "p", sk: "s" }, setA, { ":a": new Uint8Array(bytes) });
    await write(partBytes);
    await expect(write(itemLimitBytes)).rejects.toMatchObject({ name: "ValidationException" });
  });

  it("has no part of an attempt that was overtaken, whichever wrote last", async () => {
    const table = await dynalite.fresh();
    const { one, claim } = await overtaken(table);
    const two = testHandler(table).at(2 * takeOverAtMs);
    const [early, right, late] = [3, 3, 4].map((parts) => randomBytes(parts * partBytes));
    if (!early || !right || !late) throw new Error("three answers");
    expect(await answerBatch(one, claim, early)).toBe(false);
    expect(await answerBatch(two, await begun(two), right)).toBe(true);
    expect(await answerBatch(one, claim, late)).toBe(false);
    const beginning = await beginBatch(two, key);
    expect(beginning.kind === "answered" && Buffer.compare(beginning.answer, right)).toBe(0);
  });

  it.each([1, 2, 3])("is none while write %i of it is missing", async (at) => {
    const table = await dynalite.fresh();
    let writes = 0;
    const dying = failing(table, (verb) => (verb !== "get" && ++writes > at ? "unsent" : "no"));
    const ctx = testHandler(dying);
    const answer = randomBytes(3 * partBytes);
    const dead = begun(ctx).then((claim) => answerBatch(ctx, claim, answer));
    await expect(dead).rejects.toMatchObject({ code: "store_unavailable" });
    expect(await beginBatch(testHandler(table), key)).toEqual({ kind: "in_progress" });
    expect((await beginBatch(testHandler(table).at(takeOverAtMs), key)).kind).toBe("begun");
  });

  it("is an error when a part has vanished, and never a part of an answer", async () => {
    const { table, written } = await watchedTable();
    const ctx = testHandler(table);
    await answerBatch(ctx, await begun(ctx), randomBytes(3 * partBytes));
    const part = written.find(({ sk }) => sk === "P");
    const without: Table = {
      ...table,
      get: async (of) => (of.pk === part?.pk ? undefined : table.get(of)),
    };
    await expect(beginBatch(testHandler(without), key)).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("is not there"),
    });
  });

  it.each([
    ["the head", ({ pk, sk }: RowKey) => pk === "B#b" && sk === "B"],
    ["a part", ({ sk }: RowKey) => sk === "P"],
  ])("is none when %s is read as another answer has it", async (_, isMixedUp) => {
    const { table, written } = await watchedTable();
    const ctx = testHandler(table);
    await answerBatch(ctx, await begun(ctx), randomBytes(2 * partBytes));
    const other = { ...key, batchId: "other" };
    const beginning = await beginBatch(ctx, other);
    if (beginning.kind !== "begun") throw new Error(beginning.kind);
    await answerBatch(ctx, beginning.claim, randomBytes(2 * partBytes));
    const mixed: Table = {
      ...table,
      async get(of) {
        const row = await table.get(of);
        const bytes = written.findLast(
          ({ pk, a }) => String(pk).includes("other") && a instanceof Uint8Array,
        )?.a;
        return row !== undefined && bytes !== undefined && isMixedUp(of) ? { ...row, a: bytes } : row;
      },
    };
    await expect(beginBatch(testHandler(mixed), key)).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("not what was recorded"),
    });
    expect((await beginBatch(testHandler(table), key)).kind).toBe("answered");
  });

  it.each([
    ["has no seal", "REMOVE #seal", {}],
    ["has the seal of an earlier attempt", "SET #seal = :seal", { ":seal": "1.of-another-answer" }],
  ])("is answered when a former version recorded it, whose row %s", async (_, update, values) => {
    const table = await dynalite.fresh();
    const ctx = testHandler(table);
    const answer = randomBytes(2 * partBytes);
    await answerBatch(ctx, await begun(ctx), answer);
    const former = { name: "as before", update, clauses: [], columns: { "#seal": batchColumns.seal } };
    await table.update(batchKeyOf(key.batchId), former, values);
    const beginning = await beginBatch(testHandler(table), key);
    expect(beginning.kind === "answered" && Buffer.compare(beginning.answer, answer)).toBe(0);
  });
});
