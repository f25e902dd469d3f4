/** Batches that are noted in their run's ledger as soon as they are settled, as those without a key are. */
import { type BatchNote, writeBatchEntry } from "../../functions/pool/runs/ledger.ts";
import type { RunRefusal } from "../../functions/pool/runs/read.ts";
import { settleBatch } from "../../functions/pool/runs/settle.ts";
import type { SlotContext } from "../../functions/pool/slots/write.ts";

type BatchNoted = { readonly kind: "noted"; readonly sincePreviousMs: number } | RunRefusal;

export function createBatchNotes(ctx: SlotContext): (runId: string, note: BatchNote) => Promise<BatchNoted> {
  return async (runId, note) => {
    const settled = await settleBatch(ctx, runId, ctx.newId(), note.busyMs);
    if (settled.kind !== "settled") return settled;
    await writeBatchEntry(ctx, settled.at, note);
    return { kind: "noted", sincePreviousMs: settled.sincePreviousMs };
  };
}
