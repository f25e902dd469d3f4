/**
 * `/v1/batches/{key}`: the batch that was sent under an `Idempotency-Key`.
 *
 * A function behind a URL never learns that its client has gone, so a client that gives up says so, to whichever
 * handler answers.
 */
import { createHash } from "node:crypto";
import type { Context } from "hono";
import type { BatchCancellation } from "../pool/batches/cancel-batch.ts";
import type { CallerVariables } from "./authentication.ts";
import { Problem } from "./problem.ts";
import { requestLimits } from "./request-schemas.ts";

export type CancelBatch = (batchId: string) => Promise<BatchCancellation>;

type BatchContext = Context<{ Variables: CallerVariables }>;

/** The batch's name in the table: keys are the caller's own, and of any text. */
export function batchIdOf(callerId: string, key: string): string {
  return createHash("sha256").update(`${callerId}:${key}`).digest("base64url");
}

/** The batch that a request is, by its header; null without one. Throws `invalid_request`. */
export function readBatchId(callerId: string, key: string | undefined): string | null {
  if (key === undefined) return null;
  const { idempotencyKeyCharacters } = requestLimits;
  if (key.length >= 1 && key.length <= idempotencyKeyCharacters) return batchIdOf(callerId, key);
  const detail = `The header Idempotency-Key must have 1 to ${idempotencyKeyCharacters} characters, and has ${key.length}. Nothing was run.`;
  throw new Problem("invalid_request", detail);
}

/** Makes the handler of `DELETE`: it answers once none of the batch's programs runs. */
export function handleCancellation(cancelBatch: CancelBatch) {
  return async (c: BatchContext): Promise<Response> => {
    const cancellation = await cancelBatch(batchIdOf(c.get("callerId"), c.req.param("key") ?? ""));
    switch (cancellation.kind) {
      case "cancelled":
        return c.json({ cancelled: true, stopped: cancellation.stopped });
      case "over":
        return c.json({ cancelled: false, stopped: 0 });
      case "batch_not_found":
        throw new Problem("not_found", "No batch was sent with this Idempotency-Key in the last hour.");
      default:
        return cancellation satisfies never;
    }
  };
}
