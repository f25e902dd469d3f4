/**
 * What a slot says of the batch that holds it: the batch's short tag and, of one with a key, which attempt it is.
 *
 * Attempts at one batch may overlap: one is cancelled, and the next one has begun before the last worker was stopped.
 * Whoever stops an attempt knows by its number whose workers are whose. Rows have no room for the attempt's fence, and
 * former versions wrote the short tag alone: that may be any attempt's.
 */
import { shortTag } from "../slot-row.ts";

export interface BatchAttempt {
  readonly batchId: string;
  /** Of a batch that has a record: the number of its claim. */
  readonly attemptNumber?: number;
}

export function batchTagOf({ batchId, attemptNumber }: BatchAttempt): string {
  return shortTag(batchId) + (attemptNumber === undefined ? "" : attemptNumber.toString(36));
}

/** Whether a slot is, or may be, held for this attempt or for one before it. */
export function isHeldFor(
  heldForBatch: string | undefined,
  { batchId, attemptNumber }: Required<BatchAttempt>,
): boolean {
  const batch = shortTag(batchId);
  if (!heldForBatch?.startsWith(batch)) return false;
  const holder = heldForBatch.slice(batch.length);
  return holder === "" || Number.parseInt(holder, 36) <= attemptNumber;
}
