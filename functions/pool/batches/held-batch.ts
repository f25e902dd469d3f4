/**
 * A batch's record while an attempt works on it: extended in time, and ended with an answer or without one.
 *
 * A refused write means that the batch was cancelled or that another attempt has it: `lost` is aborted with the reason,
 * which is also the answer's; whatever this attempt has found must not be told. A table that does not answer means
 * nothing of the kind.
 */
import { Fault } from "../../rewards/faults.ts";
import type { BatchEntry } from "../runs/ledger.ts";
import { type BatchClaim, type BatchRecord, type RecordContext, readBatch } from "./batch-record.ts";
import { answerBatch, endBatch, extendBatch } from "./end-batch.ts";

/** Time until the next try after an extension that got no answer. */
const retryExtensionMs = 3_000;
/** How long a graded batch's answer waits for a table that doesn't take its record. */
const insistForMs = 20_000;
const betweenTriesMs = 1_500;

export interface HoldBatchContext extends RecordContext {
  readonly random: () => number;
}

export interface HeldBatch extends BatchClaim {
  /** Aborted with a `Fault` when nobody wants this attempt's answer any more: `cancelled` or `in_progress`. */
  readonly lost: AbortSignal;
  /** The same, looked up now; null while the batch is ours. Throws the table's faults. */
  findEnd(): Promise<Fault | null>;
  /**
   * Records the answer, and the entry of the run's ledger that goes with it. Only what is recorded may be told: throws
   * the reason when the batch is not ours any more, and `store_unavailable` when the table doesn't take it for a while.
   */
  answer(bytes: Uint8Array, entry?: BatchEntry | null): Promise<void>;
  /** Ends the attempt without an answer to keep. Throws the reason when the batch is not ours any more. */
  end(): Promise<void>;
}

/** Starts to hold the record of an attempt that has begun. `onFault` is told what the table does in the background. */
export function holdBatch(
  ctx: HoldBatchContext,
  claim: BatchClaim,
  onFault: (fault: unknown) => void,
): HeldBatch {
  const over = new AbortController();
  const lost = new AbortController();

  const look = async () => endOf(await readBatch(ctx, claim.batchId), claim);

  async function keepExtended(): Promise<void> {
    let waitMs = ctx.settings.extendEveryMs;
    for (;;) {
      await ctx.clock.sleep(waitMs, over.signal);
      if (over.signal.aborted) return;
      waitMs = ctx.settings.extendEveryMs;
      try {
        if (await extendBatch(ctx, claim)) continue;
        const reason = (await look()) ?? overtaken();
        if (!over.signal.aborted) lost.abort(reason);
        return;
      } catch (error) {
        waitMs = retryExtensionMs;
        onFault(error);
      }
    }
  }

  /** A refusal may come from an earlier try of ours that came through: the record tells. */
  async function checkEnded(state: BatchRecord["state"]): Promise<void> {
    const record = await readBatch(ctx, claim.batchId);
    if (record?.fence === claim.fence && record.state === state) return;
    throw endOf(record, claim) ?? overtaken();
  }

  keepExtended().catch(onFault);
  return {
    ...claim,
    lost: lost.signal,
    findEnd: look,
    async answer(bytes, entry = null) {
      try {
        await insist(ctx, async () => {
          if (!(await answerBatch(ctx, claim, bytes, entry))) await checkEnded("answered");
        });
      } finally {
        over.abort();
      }
    },
    async end() {
      over.abort();
      try {
        if (!(await endBatch(ctx, claim))) await checkEnded("over");
      } catch (error) {
        if (!isTableFault(error)) throw error;
        onFault(error); // the lease ends by itself
      }
    },
  };
}

/** Tries again while the table doesn't answer, for a while. */
async function insist({ clock, random }: HoldBatchContext, write: () => Promise<void>): Promise<void> {
  const giveUpAtMs = clock.nowMs() + insistForMs;
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!isTableFault(error)) throw error;
      if (clock.nowMs() >= giveUpAtMs) throw unrecorded(error);
      await clock.sleep(betweenTriesMs * (0.5 + random()));
    }
  }
}

function isTableFault(error: unknown): error is Fault {
  return error instanceof Fault && error.code === "store_unavailable";
}

/** Why the attempt is over; null while it is ours. */
function endOf(record: BatchRecord | null, { fence }: BatchClaim): Fault | null {
  if (record?.state === "cancelled") return new Fault("cancelled", "The batch was cancelled.");
  return record !== null && record.fence !== fence ? overtaken() : null;
}

function overtaken(): Fault {
  const detail =
    "This attempt at the batch stood still for so long that another one took its place. Send it again with the same Idempotency-Key: it gets the other one's answer.";
  return new Fault("in_progress", detail);
}

function unrecorded(cause: Fault): Fault {
  const detail =
    "The batch was graded, but the table did not record its answer under the Idempotency-Key. Send it again with the same key: it is answered from the record, if that was written after all, or runs again.";
  return new Fault("store_unavailable", detail, { cause });
}
