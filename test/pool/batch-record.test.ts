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
import type { Table, UpdateExpression } from "../../functions/pool/ports.ts";
import { forgettingClause, losingAnswers } from "./broken-table.ts";
import { createMemoryTable } from "./memory-table.ts";
import { testHandler } from "./test-pool.ts";

interface Scene {
  readonly promise: string;
  readonly expression: UpdateExpression;
  readonly clause: string;
  /** Whether the promise was kept. */
  readonly play: (table: Table) => Promise<boolean>;
}

const scenes: readonly Scene[] = [
  {
    promise: "a repeated beginning that comes late does not undo a cancellation",
    expression: beginBatchExpression,
    clause: clauseOf(beginBatchExpression, "#attempt"),
    async play(table) {
      const ctx = testHandler(table);
      await beginBatch(ctx, "b", "one");
      await markCancelled(ctx, "b");
      await beginBatch(ctx, "b", "one");
      return isCancelled(ctx, "b", "one");
    },
  },
  {
    promise: "an attempt that ends late does not end the one after it",
    expression: endBatchExpression,
    clause: clauseOf(endBatchExpression, "#attempt"),
    async play(table) {
      const ctx = testHandler(table);
      await beginBatch(ctx, "b", "one");
      await beginBatch(ctx, "b", "two");
      await endBatch(ctx, "b", "one");
      return (await markCancelled(ctx, "b")) === "cancelled";
    },
  },
  {
    promise: "a batch that was cancelled stays so when its handler is done with it",
    expression: endBatchExpression,
    clause: clauseOf(endBatchExpression, "#state"),
    async play(table) {
      const ctx = testHandler(table);
      await beginBatch(ctx, "b", "one");
      await markCancelled(ctx, "b");
      await endBatch(ctx, "b", "one");
      return (await markCancelled(ctx, "b")) === "cancelled";
    },
  },
  {
    promise: "a batch that ends while it is being cancelled is over",
    expression: cancelBatchExpression,
    clause: clauseOf(cancelBatchExpression, "#state"),
    async play(table) {
      const ctx = testHandler(table);
      await beginBatch(ctx, "b", "one");
      const ending: Table = {
        ...table,
        async update(key, expression, values) {
          if (expression.name === cancelBatchExpression.name) await endBatch(ctx, "b", "one");
          return table.update(key, expression, values);
        },
      };
      return (await markCancelled({ ...ctx, table: ending }, "b")) === "over";
    },
  },
];

function clauseOf({ clauses, name }: UpdateExpression, word: string): string {
  const clause = clauses.find((one) => one.includes(word));
  if (clause === undefined) throw new Error(`${name} has no clause about ${word}`);
  return clause;
}

describe("a batch's record", () => {
  it.each(scenes)("$promise, and would without '$clause'", async ({ expression, clause, play }) => {
    expect(await play(createMemoryTable())).toBe(true);
    expect(await play(forgettingClause(createMemoryTable(), expression, clause))).toBe(false);
  });

  it("has no clause that isn't proved here", () => {
    const all = [beginBatchExpression, endBatchExpression, cancelBatchExpression];
    const proved = scenes.map(({ expression, clause }) => `${expression.name}: ${clause}`);
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
