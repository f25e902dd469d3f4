/**
 * Grading under a key: the record is held while the batch is graded, and has the answer before anybody is told it.
 *
 * An answer with faults is not recorded, so that who sends the batch again has it graded again.
 */
import type { BatchClaim } from "../pool/batches/batch-record.ts";
import { type HeldBatch, type HoldBatchContext, holdBatch } from "../pool/batches/held-batch.ts";
import type { BatchAnswer, BatchHooks } from "./batch.ts";

/** Grades while the record is held; `grade` is to stop when its signal is aborted. Throws as `GradeBatch` does. */
export async function gradeUnderKey(
  ctx: HoldBatchContext,
  claim: BatchClaim,
  hooks: BatchHooks,
  options: {
    readonly grade: (held: HeldBatch, signal: AbortSignal) => Promise<BatchAnswer>;
    /** Told what the table does in the background. */
    readonly report: (fault: unknown) => void;
  },
): Promise<BatchAnswer> {
  const held = holdBatch(ctx, claim, options.report);
  try {
    const answer = await options.grade(held, AbortSignal.any([hooks.signal, held.lost]));
    await record(held, answer, hooks);
    return answer;
  } catch (error) {
    await held.end().catch(() => {}); // why it is not ours any more is told below
    throw held.lost.aborted ? held.lost.reason : error;
  }
}

async function record(held: HeldBatch, answer: BatchAnswer, { encodeRecord }: BatchHooks): Promise<void> {
  const hasFaults = answer.rewards.includes(null);
  const bytes = hasFaults ? null : ((await encodeRecord?.(answer)) ?? null);
  await (bytes === null ? held.end() : held.answer(bytes));
}
