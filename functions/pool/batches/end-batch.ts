/** What the holder of a batch's record writes: it works on, it has the answer, it is done without one. */
import type { BatchEntry } from "../runs/ledger.ts";
import { expressionOver } from "../slot-row.ts";
import { writeRow } from "../slots/write.ts";
import { cutAnswer, sealAnswer, writeMoreParts } from "./answer-parts.ts";
import {
  type BatchClaim,
  batchColumns,
  batchKeyOf,
  isRunning,
  isStillOurs,
  type RecordContext,
  recordUntilS,
} from "./batch-record.ts";

export const extendBatchExpression = expressionOver(batchColumns, {
  name: "extend batch",
  update: "SET #leaseUntilMs = :leaseUntilMs",
  clauses: [isStillOurs, isRunning],
});

export const answerBatchExpression = expressionOver(batchColumns, {
  name: "answer batch",
  update:
    "SET #state = :answered, #firstPart = :firstPart, #moreParts = :moreParts, #seal = :seal, #entry = :entry, " +
    "#recordUntilS = :recordUntilS",
  clauses: [isStillOurs, isRunning],
});

export const endBatchExpression = expressionOver(batchColumns, {
  name: "end batch",
  update: "SET #state = :over",
  clauses: [isStillOurs, isRunning],
});

/** Moves the lease's end; false when the batch was cancelled, or another attempt has it. Throws the table's faults. */
export async function extendBatch(ctx: RecordContext, claim: BatchClaim): Promise<boolean> {
  const leaseUntilMs = ctx.clock.nowMs() + ctx.settings.leaseMs;
  return writeHeld(ctx, claim, extendBatchExpression, { ":leaseUntilMs": leaseUntilMs });
}

/**
 * Records the answer, the parts before the head that makes them valid, and what is to be counted with it. False: refused,
 * maybe since an earlier call of the same came through. Throws the table's faults: then it may be recorded or not.
 */
export async function answerBatch(
  ctx: RecordContext,
  claim: BatchClaim,
  answer: Uint8Array,
  entry: BatchEntry | null = null,
): Promise<boolean> {
  const untilS = recordUntilS(ctx.clock.nowMs());
  const [first, ...more] = cutAnswer(answer);
  if (first === undefined) throw new TypeError("an answer has a first part");
  await writeMoreParts(ctx, claim, [first, ...more], untilS);
  return writeHeld(ctx, claim, answerBatchExpression, {
    ":answered": "answered",
    ":firstPart": first,
    ":moreParts": more.length,
    ":entry": entry === null ? "" : JSON.stringify(entry),
    ":seal": sealAnswer(claim, answer),
    ":recordUntilS": untilS,
  });
}

/** Notes that the attempt is over and has no answer to keep; false as above. Throws the table's faults. */
export async function endBatch(ctx: RecordContext, claim: BatchClaim): Promise<boolean> {
  return writeHeld(ctx, claim, endBatchExpression, { ":over": "over" });
}

async function writeHeld(
  { table }: RecordContext,
  { batchId, fence }: BatchClaim,
  expression: typeof endBatchExpression,
  values: Readonly<Record<string, string | number | Uint8Array>>,
): Promise<boolean> {
  const held = { ...values, ":fence": fence, ":running": "running" };
  const row = await writeRow(table, batchKeyOf(batchId), expression, held, () => false);
  return row !== null;
}
