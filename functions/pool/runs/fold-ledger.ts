/**
 * Fold: a run's row takes over what is old in its ledger, and learns of its last batch.
 *
 * One write moves `foldedUntil` on and adds what it passed, under the condition that nobody has moved it since it was
 * read; so a fold is whole or was not, and counts once however often it is sent. Places are passed only when nobody can
 * write there any more.
 *
 * A run that is over is folded to behind its end, and its ledger needs not be asked any more.
 */
import { type SlotContext, writeRow } from "../slots/write.ts";
import { countWords, type LedgerEntry, readLedger, sumEntries } from "./ledger.ts";
import {
  isNotFinished,
  isRegistered,
  type RunRow,
  recordUntilS,
  runExpression,
  runKey,
  runLifeMs,
  runState,
  verdictKinds,
} from "./run-row.ts";

/** A place is chosen and written in one request, and the longest takes a quarter of an hour. */
const writtenWithinMs = 900_000;
/** Places so old are passed. */
export const foldAfterMs = writtenWithinMs + 300_000;

const wasNeverFolded = "attribute_not_exists(#foldedUntil)";
const isAsWeReadIt = "#foldedUntil = :seenUntil";
const words = [...countWords, "spentMs", "reportedMs", ...verdictKinds];

export const foldExpression = runExpression({
  name: "fold ledger",
  update: `SET #foldedUntil = :foldedUntil ADD ${words.map((word) => `#${word} :${word}`).join(", ")}`,
  clauses: [isRegistered, `(${wasNeverFolded} OR ${isAsWeReadIt})`],
});

const nobodyBeatSince = "#beatAtMs = :seenBeatAtMs";

export const setBeatExpression = runExpression({
  name: "set beat",
  update: "SET #beatAtMs = :beatAtMs, #recordUntilS = :recordUntilS",
  clauses: [isRegistered, isNotFinished, nobodyBeatSince],
});

/** Whether all entries that the run will ever have are in its row. */
export function isSettled(run: RunRow): boolean {
  return run.foldedUntil >= settledFrom(run);
}

/** The place behind which nothing is noted for a run that is over. A finish must not bring it forward. */
function settledFrom({ beatAtMs, finishedAtMs = 0 }: RunRow): number {
  return Math.ceil(Math.max(beatAtMs + runLifeMs, finishedAtMs)) + writtenWithinMs;
}

/** Folds what is old, for one run; `run` is its row as it was stored. Throws the table's faults. */
export async function foldLedger(ctx: Pick<SlotContext, "table" | "clock">, run: RunRow): Promise<void> {
  const nowMs = ctx.clock.nowMs();
  const entries = isSettled(run) ? [] : await readLedger(ctx, run);
  await noteLife(ctx, run, entries, nowMs);
  const oldUntil = Math.floor(nowMs) - foldAfterMs;
  const old = entries.filter(({ place }) => place <= oldUntil);
  const isOver = runState(run, nowMs) !== "active" && old.length === entries.length;
  const settles = isOver && !isSettled(run) && isSettled({ ...run, foldedUntil: oldUntil });
  if (old.length === 0 && !settles) return;
  // No further than that: by a clock that is ahead, a run that lives on would be settled for as long as that is ahead.
  const lastPlace = Math.max(run.foldedUntil, ...old.map(({ place }) => place));
  const foldedUntil = settles ? Math.max(lastPlace, settledFrom(run)) : lastPlace;
  const { totals, spentMs, reportedMs } = sumEntries(old);
  const { verdicts, ...counts } = totals;
  const sums = Object.entries({ ...counts, ...verdicts, spentMs, reportedMs });
  const values = Object.fromEntries(sums.map(([word, sum]) => [`:${word}`, sum]));
  const places = { ":foldedUntil": foldedUntil, ":seenUntil": run.foldedUntil };
  await writeRow(ctx.table, runKey(run.runId), foldExpression, { ...values, ...places }, () => false);
}

/**
 * The last batch is a sign of life, and the sweep writes it into the row, for those who read no ledger. A sign of a
 * clock that is far ahead is brought back to now: the run would live on for as long as that clock is ahead. One that is
 * ahead by less than a life may come of our own clock's being slow, and costs another life at most.
 */
async function noteLife(
  { table }: Pick<SlotContext, "table">,
  run: RunRow,
  entries: readonly LedgerEntry[],
  nowMs: number,
): Promise<void> {
  if (run.finishedAtMs !== undefined) return;
  const isAhead = run.beatAtMs > nowMs + runLifeMs;
  const lastBatchAtMs = Math.min(nowMs, sumEntries(entries).lastBatchAtMs);
  const beatAtMs = isAhead ? nowMs : lastBatchAtMs;
  if (!isAhead && beatAtMs <= run.beatAtMs) return;
  const values = {
    ":beatAtMs": beatAtMs,
    ":recordUntilS": recordUntilS(beatAtMs),
    ":seenBeatAtMs": run.beatAtMs,
  };
  await writeRow(table, runKey(run.runId), setBeatExpression, values, () => true);
}
