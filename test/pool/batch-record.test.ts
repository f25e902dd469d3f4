/** A batch's record: what each clause of its writes is for, and that nothing holds without it. */
import { describe, expect, it } from "vitest";
import {
  beginBatch,
  beginBatchExpression,
  cancelBatchExpression,
  endBatch,
  endBatchExpression,
  isCancelled,
  markCancelled,
} from "../../functions/pool/batches/batch-record.ts";
import { batchScenes } from "./batch-scenes.ts";
import { forgettingClause, losingAnswers } from "./broken-table.ts";
import { createMemoryTable } from "./memory-table.ts";
import { testHandler } from "./test-pool.ts";

describe("a batch's record", () => {
  it.each(batchScenes)("$promise, and would without '$clause'", async ({ expression, clause, play }) => {
    expect(await play(createMemoryTable())).toBe(true);
    expect(await play(forgettingClause(createMemoryTable(), expression, clause))).toBe(false);
  });

  it("has no clause that isn't proved here", () => {
    const all = [beginBatchExpression, endBatchExpression, cancelBatchExpression];
    const proved = batchScenes.map(({ expression, clause }) => `${expression.name}: ${clause}`);
    expect(all.flatMap(({ name, clauses }) => clauses.map((clause) => `${name}: ${clause}`))).toEqual(proved);
  });

  it("is right although every answer gets lost and every write is sent twice", async () => {
    const ctx = testHandler(losingAnswers(createMemoryTable(), () => true));
    await beginBatch(ctx, "b", "one");
    expect(await isCancelled(ctx, "b", "one")).toBe(false);
    expect(await markCancelled(ctx, "b")).toBe("cancelled");
    expect(await isCancelled(ctx, "b", "one")).toBe(true);
    await beginBatch(ctx, "b", "two");
    expect([await isCancelled(ctx, "b", "one"), await isCancelled(ctx, "b", "two")]).toEqual([true, false]);
    await endBatch(ctx, "b", "two");
    expect(await markCancelled(ctx, "b")).toBe("over");
  });

  it("is forgotten after an hour, and never known of a batch that was not begun", async () => {
    const ctx = testHandler(createMemoryTable());
    await beginBatch(ctx, "b", "one");
    expect(await markCancelled(ctx, "another")).toBeNull();
    expect(await markCancelled(ctx.at(3_601_000), "b")).toBeNull();
  });
});
