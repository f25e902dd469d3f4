/**
 * Grading under a key: the record is held while the batch is graded, and has the answer before anybody is told it. What
 * the record took is counted then, still before anybody is told.
 *
 * An answer with faults is not recorded, so that who sends the batch again has it graded again.
 */
import type { BatchClaim } from "../pool/batches/batch-record.ts";
import { type HeldBatch, type HoldBatchContext, holdBatch } from "../pool/batches/held-batch.ts";
import type { BatchEntry } from "../pool/runs/ledger.ts";
import type { BatchAnswer, BatchHooks } from "./batch.ts";

/** What is done for one attempt. */
export interface AttemptWork {
  /** Grades, and is to stop when the signal is aborted. */
  grade(held: HeldBatch, signal: AbortSignal): Promise<BatchAnswer>;
  /** What counts for the graded batch. */
  entry(): BatchEntry | null;
  /** Counts it. Must not throw. */
  countResult(): Promise<unknown>;
  /** Counts what it cost when it is graded and not recorded, for the reason given. Must not throw. */
  countCost(reason: unknown): Promise<void>;
  /** Told what the table does in the background. */
  report(fault: unknown): void;
}

/** Grades while the record is held. Throws as `GradeBatch` does. */
export async function gradeUnderKey(
  ctx: HoldBatchContext,
  claim: BatchClaim,
  hooks: BatchHooks,
  work: AttemptWork,
): Promise<BatchAnswer> {
  const held = holdBatch(ctx, claim, work.report);
  try {
    const answer = await work.grade(held, AbortSignal.any([hooks.signal, held.lost]));
    await recordOrCountCost(held, answer, hooks, work);
    await work.countResult();
    return answer;
  } catch (error) {
    await held.end().catch(() => {}); // why it is not ours any more is told below
    throw held.lost.aborted ? held.lost.reason : error;
  }
}

async function recordOrCountCost(
  held: HeldBatch,
  answer: BatchAnswer,
  hooks: BatchHooks,
  work: AttemptWork,
): Promise<void> {
  try {
    await record(held, answer, hooks, work.entry());
  } catch (error) {
    await work.countCost(held.lost.aborted ? held.lost.reason : error);
    throw error;
  }
}

async function record(
  held: HeldBatch,
  answer: BatchAnswer,
  { encodeRecord }: BatchHooks,
  entry: BatchEntry | null,
): Promise<void> {
  const hasFaults = answer.rewards.includes(null);
  const bytes = hasFaults ? null : ((await encodeRecord?.(answer)) ?? null);
  await (bytes === null ? held.end() : held.answer(bytes, entry));
}
