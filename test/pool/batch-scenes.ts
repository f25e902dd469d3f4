/** States of a batch's record in which one clause of a condition alone keeps a promise. */
import { type BatchClaim, readBatch } from "../../functions/pool/batches/batch-record.ts";
import {
  beginAgainExpression,
  beginBatch,
  beginBatchExpression,
} from "../../functions/pool/batches/begin-batch.ts";
import { countAnswered, moveEntryExpression } from "../../functions/pool/batches/count-answered.ts";
import {
  answerBatch,
  answerBatchExpression,
  endBatch,
  endBatchExpression,
  extendBatch,
  extendBatchExpression,
} from "../../functions/pool/batches/end-batch.ts";
import { cancelBatchExpression, markCancelled } from "../../functions/pool/batches/mark-cancelled.ts";
import type { Table, UpdateExpression } from "../../functions/pool/ports.ts";
import { foldLedger } from "../../functions/pool/runs/fold-ledger.ts";
import { writeBatchEntry } from "../../functions/pool/runs/ledger.ts";
import { getRun, getRunRow } from "../../functions/pool/runs/read.ts";
import { registerRun } from "../../functions/pool/runs/register.ts";
import { startMs, type TestHandler, testHandler } from "./test-pool.ts";

interface Scene {
  readonly promise: string;
  readonly expression: UpdateExpression;
  readonly clause: string;
  /** Whether the promise was kept. */
  readonly play: (table: Table) => Promise<boolean>;
}

export const key = { batchId: "b", bodyHash: "body" };
export const answer = Buffer.from("an answer");
/** When a lease that began at the start, and was not extended, may be taken over. */
export const takeOverAtMs = 65_001;

export const batchScenes: readonly Scene[] = [
  {
    promise: "only one of those who come first begins",
    ...clauseOf(beginBatchExpression, "#fence"),
    async play(table) {
      await begun(testHandler(table));
      return (await beginBatch(testHandler(table), key)).kind === "in_progress";
    },
  },
  {
    promise: "no fence is given twice, though two saw the same record",
    ...clauseOf(beginAgainExpression, ":seenFence"),
    async play(table) {
      const ctx = testHandler(table);
      await endBatch(ctx, await begun(ctx));
      let quicker: BatchClaim | null = null;
      const meanwhile = before(table, beginAgainExpression, async () => {
        quicker ??= await begun(ctx);
        await endBatch(ctx, quicker);
      });
      const slower = await begun({ ...ctx, table: meanwhile });
      return quicker !== null && slower.fence > (quicker as BatchClaim).fence;
    },
  },
  {
    promise: "an attempt that extends its lease at the last moment is not overtaken",
    ...clauseOf(beginAgainExpression, "#leaseUntilMs"),
    async play(table) {
      const one = testHandler(table);
      const claim = await begun(one);
      const meanwhile = before(table, beginAgainExpression, () => extendBatch(one.at(takeOverAtMs), claim));
      return (await beginBatch(testHandler(meanwhile).at(takeOverAtMs), key)).kind === "in_progress";
    },
  },
  {
    promise: "an attempt that answers at the last moment is not overtaken",
    ...clauseOf(beginAgainExpression, "#recordUntilS"),
    async play(table) {
      const one = testHandler(table);
      const claim = await begun(one);
      const meanwhile = before(table, beginAgainExpression, () => answerBatch(one, claim, answer));
      return (await beginBatch(testHandler(meanwhile).at(takeOverAtMs), key)).kind === "answered";
    },
  },
  {
    promise: "an attempt that was overtaken is told so when it extends",
    ...clauseOf(extendBatchExpression, "#fence"),
    async play(table) {
      const { one, claim } = await overtaken(table);
      return !(await extendBatch(one, claim));
    },
  },
  {
    promise: "an attempt that was cancelled is told so when it extends",
    ...clauseOf(extendBatchExpression, "#state"),
    async play(table) {
      const ctx = testHandler(table);
      const claim = await begun(ctx);
      await markCancelled(ctx, "b");
      return !(await extendBatch(ctx, claim));
    },
  },
  {
    promise: "an attempt that was overtaken does not answer for the one after it",
    ...clauseOf(answerBatchExpression, "#fence"),
    async play(table) {
      const { one, claim } = await overtaken(table);
      await answerBatch(one, claim, answer);
      return (await readBatch(one, "b"))?.state === "running";
    },
  },
  {
    promise: "an answer does not undo a cancellation",
    ...clauseOf(answerBatchExpression, "#state"),
    async play(table) {
      const ctx = testHandler(table);
      const claim = await begun(ctx);
      await markCancelled(ctx, "b");
      await answerBatch(ctx, claim, answer);
      return (await markCancelled(ctx, "b"))?.state === "cancelled";
    },
  },
  {
    promise: "an attempt that ends late does not end the one after it",
    ...clauseOf(endBatchExpression, "#fence"),
    async play(table) {
      const { one, claim } = await overtaken(table);
      await endBatch(one, claim);
      return (await readBatch(one, "b"))?.state === "running";
    },
  },
  {
    promise: "a batch that was cancelled stays so when its handler is done with it",
    ...clauseOf(endBatchExpression, "#state"),
    async play(table) {
      const ctx = testHandler(table);
      const claim = await begun(ctx);
      await markCancelled(ctx, "b");
      await endBatch(ctx, claim);
      return (await markCancelled(ctx, "b"))?.state === "cancelled";
    },
  },
  {
    promise: "a repeated cancellation that comes late does not cancel the attempt after it",
    ...clauseOf(cancelBatchExpression, ":seenFence"),
    async play(table) {
      const ctx = testHandler(table);
      await begun(ctx);
      let repeat = async () => {};
      const recording: Table = {
        ...table,
        update(...call) {
          repeat = async () => void (await table.update(...call));
          return table.update(...call);
        },
      };
      await markCancelled({ ...ctx, table: recording }, "b");
      await begun(ctx);
      await repeat();
      return (await readBatch(ctx, "b"))?.state === "running";
    },
  },
  {
    promise: "a batch that ends while it is being cancelled is over",
    ...clauseOf(cancelBatchExpression, "#state"),
    async play(table) {
      const ctx = testHandler(table);
      const claim = await begun(ctx);
      const meanwhile = before(table, cancelBatchExpression, () => endBatch(ctx, claim));
      return (await markCancelled({ ...ctx, table: meanwhile }, "b"))?.state === "over";
    },
  },
  {
    promise: "an answered batch whose place was folded is counted once, though two find its answer",
    ...clauseOf(moveEntryExpression, "#entry"),
    async play(table) {
      const ctx = testHandler(table);
      await registerRun(ctx, "r1", { name: "r1", workers: 1, metadata: {} });
      const note = { samples: 1, verdicts: {}, faults: 0, retries: 0, workersCreated: 0, busyMs: 0 };
      const entryAt = (ms: number, id: string) => ({ runId: "r1", place: startMs + ms, id });
      const claim = await begun(ctx);
      await answerBatch(ctx, claim, answer, { at: entryAt(2_000, `b#${claim.fence}`), note });
      await writeBatchEntry(ctx, entryAt(3_000, "another batch"), note);
      const folded = await getRunRow(ctx, "r1");
      const seen = await readBatch(ctx, "b");
      if (folded === null || seen === null) throw new Error("the run and the record are there");
      await foldLedger(ctx.at(2_000_000), folded);
      const other = testHandler(table).at(2_000_001);
      const meanwhile = before(table, moveEntryExpression, () => countAnswered(other, "b", seen));
      await countAnswered({ ...ctx, table: meanwhile }, "b", seen);
      return (await getRun(ctx, "r1"))?.totals.batches === 2;
    },
  },
];

/** An attempt at the batch that has begun. */
export async function begun(ctx: Parameters<typeof beginBatch>[0], of = key): Promise<BatchClaim> {
  const beginning = await beginBatch(ctx, of);
  if (beginning.kind !== "begun") throw new Error(`the batch is ${beginning.kind}`);
  return beginning.claim;
}

/** An attempt whose holder stood still, so that another took its place. */
export async function overtaken(table: Table): Promise<{ one: TestHandler; claim: BatchClaim }> {
  const one = testHandler(table);
  const claim = await begun(one);
  await begun(testHandler(table).at(takeOverAtMs));
  return { one: one.at(takeOverAtMs), claim };
}

/** A table in which something happens right before each write of that expression. */
function before(table: Table, { name }: UpdateExpression, happens: () => Promise<unknown>): Table {
  return {
    ...table,
    async update(...call) {
      if (call[1].name === name) await happens();
      return table.update(...call);
    },
  };
}

function clauseOf(expression: UpdateExpression, word: string): Pick<Scene, "expression" | "clause"> {
  const clause = expression.clauses.find((one) => one.includes(word));
  if (clause === undefined) throw new Error(`${expression.name} has no clause about ${word}`);
  return { expression, clause };
}
