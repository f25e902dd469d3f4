/** States of a batch's record in which one clause of a condition alone keeps a promise. */
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
import { testHandler } from "./test-pool.ts";

interface Scene {
  readonly promise: string;
  readonly expression: UpdateExpression;
  readonly clause: string;
  /** Whether the promise was kept. */
  readonly play: (table: Table) => Promise<boolean>;
}

export const batchScenes: readonly Scene[] = [
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
