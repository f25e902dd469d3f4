/**
 * Cancelling a batch that some handler, maybe another one, works on.
 *
 * The record is written first, then the pool is read: a holder looks at the record after each worker that it leases, so
 * it either sees the cancellation or its worker is seen here. Each of its workers is taken from it, its supervisor told
 * the new fence, and only when that says that it is clean does the worker go back to the pool; else its sandbox dies.
 * The holder learns of it from its supervisor at once, or from its next extension.
 *
 * Who cancels may send the batch again before that is done: the next attempt's workers are left alone.
 *
 * Until then the slot keeps the batch's tag, also while it is drained: whoever cancels may die at any point, and who
 * asks again must not be told that all is over while programs of the batch run on.
 */
import { Fault } from "../../rewards/faults.ts";
import { type EndContext, endWorker } from "../ending.ts";
import { readPool } from "../pool-view.ts";
import type { WorkerStopper } from "../ports.ts";
import { type SlotRow, workerOf } from "../slot-row.ts";
import { emptySlot } from "../slots/empty.ts";
import { releaseDraining, releaseReady } from "../slots/release.ts";
import { revokeLease } from "../slots/take-over.ts";
import type { SlotContext } from "../slots/write.ts";
import { isHeldFor } from "./batch-tag.ts";
import { markCancelled } from "./mark-cancelled.ts";

export interface CancelContext extends SlotContext, EndContext {
  readonly stopper: WorkerStopper;
}

export type BatchCancellation =
  /** None of its programs runs any more; `stopped` workers were taken from it now. */
  | { readonly kind: "cancelled"; readonly stopped: number }
  /** It had ended before. */
  | { readonly kind: "over" }
  | { readonly kind: "batch_not_found" };

/** How long a supervisor has to say that it is clean. */
const confirmWithinMs = 5_000;
/** A holder that goes on leasing looks at the record after each lease; more rounds than this are no race. */
const mostRounds = 10;
/** Two who cancel at once take the workers from each other: they make room, more each time. */
const betweenRoundsMs = 100;

/** Cancels; again, the same. Throws the table's faults, and `sandbox_unavailable` when a worker can't be stopped. */
export async function cancelBatch(ctx: CancelContext, batchId: string): Promise<BatchCancellation> {
  const marked = await markCancelled(ctx, batchId);
  if (marked === null) return { kind: "batch_not_found" };
  if (marked.state === "over" || marked.state === "answered") return { kind: "over" };
  const cancelled = { batchId, attemptNumber: marked.attemptNumber };
  let stopped = 0;
  for (let round = 0; round < mostRounds; round += 1) {
    const { slots } = await readPool(ctx);
    const held = slots.filter(
      (row) => (row.state === "leased" || row.state === "draining") && isHeldFor(row.heldForBatch, cancelled),
    );
    if (held.length === 0) return { kind: "cancelled", stopped };
    if (round > 0) await ctx.clock.sleep(betweenRoundsMs * round);
    const taken = await Promise.all(
      held.map((row) => (row.state === "leased" ? stopWorker(ctx, row) : finishDrain(ctx, row))),
    );
    stopped += taken.filter((wasTaken) => wasTaken).length;
  }
  throw new Fault("sandbox_unavailable", "The batch's workers could not be stopped in time. Ask again.");
}

/** Takes a worker from the batch and makes sure that nothing of it runs; false when it was given back meanwhile. */
async function stopWorker(ctx: CancelContext, seen: SlotRow): Promise<boolean> {
  const holder = { runTag: seen.heldForRun ?? "", batchTag: seen.heldForBatch ?? "" };
  const taken = await revokeLease(ctx, seen, holder);
  if (taken === null) return false;
  if (await isConfirmedClean(ctx, taken)) {
    await releaseReady(ctx, taken);
    return true;
  }
  const row = await releaseDraining(ctx, taken);
  if (row !== null) await finishDrain(ctx, row);
  return true;
}

/** Ends the sandbox of a slot that is drained, by us or by somebody who may have died; false: nothing was taken. */
async function finishDrain(ctx: CancelContext, row: SlotRow): Promise<boolean> {
  if (!(await endWorker(ctx, row))) {
    const detail =
      "A worker of the batch neither answers nor can be ended now; it is tried again every minute.";
    throw new Fault("sandbox_unavailable", detail);
  }
  await emptySlot(ctx, row);
  return false;
}

async function isConfirmedClean({ stopper, clock }: CancelContext, taken: SlotRow): Promise<boolean> {
  const worker = workerOf(taken);
  if (worker === null) return false;
  const late = new AbortController();
  const done = new AbortController();
  void clock.sleep(confirmWithinMs, done.signal).then(() => late.abort());
  try {
    await stopper.stop(worker, taken.fence, late.signal);
    return true;
  } catch {
    return false; // whatever it is: a worker that doesn't say so is not clean
  } finally {
    done.abort();
  }
}
