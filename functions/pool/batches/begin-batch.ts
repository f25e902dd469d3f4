/**
 * Begin: an attempt at a batch takes its record, unless the record answers, or another attempt is under way.
 *
 *   ── last extension ── leaseMs ──▶ leaseUntilMs ── graceMs ──▶ may be taken over
 *
 * The ordinary batch is new: one write and no read. Who finds a record reads it, and takes it, if it may, by the fence
 * that it read: whoever was quicker has raised it.
 */
import { expressionOver } from "../slot-row.ts";
import { writeRow } from "../slots/write.ts";
import { readAnswer } from "./answer-parts.ts";
import {
  type BatchClaim,
  type BatchKey,
  type BatchRecord,
  batchColumns,
  batchKeyOf,
  isForgotten,
  type RecordContext,
  readBatch,
  recordUntilS,
} from "./batch-record.ts";
import { countAnswered } from "./count-answered.ts";

const isNew = "attribute_not_exists(#fence)";
const isAsWeReadIt = "#fence = :seenFence";
/** A lease of a clock that is far ahead is nobody's: it would keep the batch from its client for as long. */
const nobodyWorksOnIt =
  "(#state <> :running OR #leaseUntilMs < :expiredBeforeMs OR #leaseUntilMs > :believedUntilMs)";
const itsAnswerIsForgotten = "(#state <> :answered OR #recordUntilS <= :nowS)";
const update =
  "SET #state = :running, #fence = :fence, #attempt = :attempt, #attemptNumber = :attemptNumber, " +
  "#bodyHash = :bodyHash, #leaseUntilMs = :leaseUntilMs, #recordUntilS = :recordUntilS " +
  "REMOVE #firstPart, #moreParts, #seal, #entry";

export const beginBatchExpression = expressionOver(batchColumns, {
  name: "begin batch",
  update,
  clauses: [isNew],
});

export const beginAgainExpression = expressionOver(batchColumns, {
  name: "begin batch again",
  update,
  clauses: [isAsWeReadIt, nobodyWorksOnIt, itsAnswerIsForgotten],
});

export type BatchBeginning =
  | { readonly kind: "begun"; readonly claim: BatchClaim }
  /** The same body was answered: this is the answer, as it was recorded. */
  | { readonly kind: "answered"; readonly answer: Uint8Array }
  /** Another attempt at it is under way. */
  | { readonly kind: "in_progress" }
  /** The key was used for another body. */
  | { readonly kind: "idempotency_mismatch" };

/** Others may be quicker each time; so many times they are not dead. */
const mostTries = 3;

/**
 * Takes the batch's record, or tells what it says. Throws the table's faults; who then asks again under the same
 * `attempt` has the record, if it was taken after all.
 */
export async function beginBatch(
  ctx: RecordContext,
  key: BatchKey,
  attempt: string = ctx.newId(),
): Promise<BatchBeginning> {
  let seen: BatchRecord | null = null;
  for (let tries = 0; tries < mostTries; tries += 1) {
    const claim = await tryToBegin(ctx, key, attempt, seen);
    if (claim !== null) return { kind: "begun", claim };
    seen = await readBatch(ctx, key.batchId);
    if (seen?.state === "running" && seen.attempt === attempt)
      return { kind: "begun", claim: claimOf(key.batchId, seen) };
    const state = seen === null ? "free" : stateFor(ctx, key, seen);
    if (state === "answered" && seen !== null) return answerFrom(ctx, key.batchId, seen);
    if (state === "in_progress" || state === "idempotency_mismatch") return { kind: state };
  }
  return { kind: "in_progress" };
}

async function answerFrom(ctx: RecordContext, batchId: string, seen: BatchRecord): Promise<BatchBeginning> {
  const answer = await readAnswer(ctx, batchId, seen);
  await countAnswered(ctx, batchId, seen);
  return { kind: "answered", answer };
}

/** What the record means to who sends this body now. */
function stateFor({ clock, settings }: RecordContext, { bodyHash }: BatchKey, seen: BatchRecord) {
  const nowMs = clock.nowMs();
  const hasNothingToSay = seen.state === "over" || seen.state === "cancelled";
  if (hasNothingToSay || isForgotten(seen, nowMs)) return "free";
  if (seen.bodyHash !== bodyHash) return "idempotency_mismatch";
  if (seen.state === "answered") return "answered";
  const isExpired = seen.leaseUntilMs < nowMs - settings.graceMs;
  return isExpired || seen.leaseUntilMs > believedUntilMs(settings, nowMs) ? "free" : "in_progress";
}

/** By twice a lease, so that a reader whose clock is behind takes no good one. */
function believedUntilMs({ leaseMs, graceMs }: RecordContext["settings"], nowMs: number): number {
  return nowMs + 2 * leaseMs + graceMs;
}

function claimOf(batchId: string, { fence, attemptNumber }: BatchRecord): BatchClaim {
  return { batchId, fence, attemptNumber };
}

async function tryToBegin(
  ctx: RecordContext,
  { batchId, bodyHash }: BatchKey,
  attempt: string,
  seen: BatchRecord | null,
): Promise<BatchClaim | null> {
  const nowMs = ctx.clock.nowMs();
  const fence = Math.max(nowMs, (seen?.fence ?? 0) + 1);
  const attemptNumber = (seen?.attemptNumber ?? 0) + 1;
  const values = {
    ":running": "running",
    ":fence": fence,
    ":attempt": attempt,
    ":attemptNumber": attemptNumber,
    ":bodyHash": bodyHash,
    ":leaseUntilMs": nowMs + ctx.settings.leaseMs,
    ":recordUntilS": recordUntilS(nowMs),
  };
  const conditions =
    seen === null
      ? {}
      : {
          ":seenFence": seen.fence,
          ":expiredBeforeMs": nowMs - ctx.settings.graceMs,
          ":believedUntilMs": believedUntilMs(ctx.settings, nowMs),
          ":answered": "answered",
          ":nowS": Math.floor(nowMs / 1_000),
        };
  const expression = seen === null ? beginBatchExpression : beginAgainExpression;
  const won = await writeRow(
    ctx.table,
    batchKeyOf(batchId),
    expression,
    { ...values, ...conditions },
    (row) => row[batchColumns.attempt] === attempt,
  );
  return won === null ? null : { batchId, fence, attemptNumber };
}
