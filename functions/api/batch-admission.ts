/**
 * How long a request waits for its batch to be let in, and what it is told when that is refused.
 *
 * Admission takes milliseconds, unless the table does not answer. A refusal that is known at once has a status of its
 * own; a stream begins when none is, so that its caller hears of it in time, and a later refusal is its last line. Who
 * wants one JSON value hears nothing meanwhile, so it is told soon that it must ask again.
 */
import type { BatchKey } from "../pool/batches/batch-record.ts";
import type { BatchOrigin } from "../rewards/admission.ts";
import type { Clock } from "../rewards/ports.ts";
import type { Admission } from "../rewards/run-grading.ts";
import { Problem } from "./problem.ts";
import type { RewardsRequest } from "./rewards-request.ts";
import { runFinished, runNotFound } from "./runs-routes.ts";

export type AdmitBatch = (origin: BatchOrigin) => Promise<Admission>;

/** A batch that has its answer, or gets it. */
export type Welcome = Extract<Admission, { readonly kind: "admitted" | "answered" }>;

/** After so long a stream begins without knowing whether the batch is let in. */
export const silentMs = 1_000;
/** Below any client's patience, which is some 30 s for an answer's first byte. */
export const admitWithinMs = 12_000;
/**
 * Of a stream, whose caller sees that it lives: long enough for a short outage. A caller that is lost meanwhile sends
 * the batch again, and what it left behind must not wait for ever.
 */
export const admitStreamWithinMs = 60_000;

/** Lets the batch in; throws the `Problem` that its refusal is. */
export async function welcomeBatch(
  admitBatch: AdmitBatch,
  { runId, batch }: RewardsRequest,
  how: { readonly key: BatchKey | null; readonly isStream: boolean; readonly signal: AbortSignal },
): Promise<Welcome> {
  const { key, isStream, signal } = how;
  const mostMs = isStream ? admitStreamWithinMs : admitWithinMs;
  const withinMs = Math.min(batch.deadlineMs, mostMs);
  const admission = await admitBatch({ runId, key, admitWithinMs: withinMs, signal });
  switch (admission.kind) {
    case "admitted":
    case "answered":
      return admission;
    case "in_progress":
      throw inProgress();
    case "idempotency_mismatch":
      throw mismatch();
    case "run_not_found":
      throw runNotFound(runId);
    case "run_finished":
      throw runFinished(runId);
    default:
      return admission satisfies never;
  }
}

/** Whether it is settled before a caller should hear something; throws what it throws by then. */
export async function isSettledSoon(clock: Clock, work: Promise<unknown>): Promise<boolean> {
  const done = new AbortController();
  const late = clock.sleep(silentMs, done.signal).then(() => false);
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    done.abort();
  }
}

function inProgress(): Problem {
  const detail =
    "The first request with this Idempotency-Key is under way. Nothing was run for this one. Send it again: once the first is graded, the answer is the same.";
  return new Problem("in_progress", detail);
}

function mismatch(): Problem {
  const detail =
    "This Idempotency-Key was sent with another body in the last hour. Nothing was run. Send the same body, or take a new key.";
  return new Problem("idempotency_mismatch", detail);
}
