/** A run and a batch, for tests. */
import { type BatchNote, newPlace, writeBatchEntry } from "../../functions/pool/runs/ledger.ts";
import { runExpression, runKey } from "../../functions/pool/runs/run-row.ts";
import type { SlotContext } from "../../functions/pool/slots/write.ts";

export const wish = { name: "grpo", workers: 3, metadata: { host: "gpu-1", seed: "7" } };

export const note: BatchNote = {
  samples: 16,
  verdicts: { passed: 30, wrong_output: 5, time_limit: 1 },
  faults: 1,
  retries: 2,
  workersCreated: 1,
  busyMs: 4_500,
};

/** Writes a batch's entry, at the handler's time. */
export async function noteAt(ctx: SlotContext, runId: string, id: string, more: Partial<BatchNote> = {}) {
  const at = newPlace(ctx, { runId, foldedUntil: 0 }, id);
  await writeBatchEntry(ctx, at, { ...note, ...more });
  return at;
}

/** The write of a container of a former version, which adds a batch to the run's row itself. */
export function addThroughLane({ table }: SlotContext, runId: string, lane: string, sequence: number) {
  const expression = runExpression(
    {
      name: "note batch",
      update:
        "SET #lane = :sequence, #beatAtMs = :sequence, #before = if_not_exists(#reportedMs, :zero), " +
        "#reportedMs = if_not_exists(#spentMs, :zero) + :busyMs, " +
        "#spentMs = if_not_exists(#spentMs, :zero) + :busyMs " +
        "ADD #batches :one, #samples :samples, #passed :passed, #busyMs :busyMs",
      clauses: [
        "attribute_exists(#registeredAtMs)",
        "attribute_not_exists(#finishedAtMs)",
        "(attribute_not_exists(#lane) OR #lane < :sequence)",
      ],
    },
    { lane, before: "spp" },
  );
  const { samples, verdicts, busyMs } = note;
  return table.update(runKey(runId), expression, {
    ":sequence": sequence,
    ":zero": 0,
    ":one": 1,
    ":samples": samples,
    ":passed": verdicts.passed ?? 0,
    ":busyMs": busyMs,
  });
}
