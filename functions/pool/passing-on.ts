/**
 * To whom a healthy worker goes when it is given back: to whoever has waited longest.
 *
 * In the same container that is one write, by which the worker changes hands. A batch of another container comes for it
 * at its next look at the pool: until then, for a moment, the worker is kept for it. Where many wait there is no need to:
 * somebody looks all the time, and takes it according to his turn. Whether any wait elsewhere is known from this
 * container's last look; only if some did is it looked who does now, so where nobody waits it costs nothing.
 */
import type { PoolEvent } from "./lease-source.ts";
import { countTaken, type PoolReader } from "./pool-reader.ts";
import type { Signs } from "./signs.ts";
import { type WorkerRow, workerOf } from "./slot-row.ts";
import { handOverSlot } from "./slots/hand-over.ts";
import { releaseKept, releaseReady } from "./slots/release.ts";
import type { SlotContext } from "./slots/write.ts";
import { isCrowded } from "./turns.ts";
import type { Place, WaitingLine } from "./waiting-line.ts";

/** `ready` for anybody, `kept` for a batch elsewhere, `handed_over` to one that waited here, `lost` before. */
export type PassedOn = "ready" | "kept" | "handed_over" | "lost";

/** Gives a healthy worker back. Throws the table's faults. */
export type PassOn = (row: WorkerRow) => Promise<PassedOn>;

interface Passing {
  readonly ctx: SlotContext;
  readonly report: (event: PoolEvent) => void;
  readonly pool: PoolReader;
  readonly line: WaitingLine;
  readonly signs: Signs;
}

/** What a look showed lately is worth another one. */
const rememberedMs = 60_000;
/** A worker is kept until the one who is next has looked at the pool again, which it does after 0.45 polls at the most. */
const keptPolls = 0.6;

export function createPassingOn(passing: Passing): PassOn {
  const { ctx, line, pool } = passing;
  return async (row) => {
    const runTag = row.heldForRun ?? "";
    const isInCrowd = isCrowded(pool.typicalWaitMs(), ctx.settings.pollMs);
    const matters = othersWaited(passing) && !(isInCrowd && line.first(runTag, ctx.clock.nowMs()) === null);
    const elsewhere = matters ? await longestElsewhere(passing, runTag) : null;
    const here = line.first(runTag, ctx.clock.nowMs());
    if (here !== null && !comesBefore(line, elsewhere, here)) {
      if (await handOver(passing, row, here)) return "handed_over";
    } else if (elsewhere !== null && !isInCrowd) {
      const untilMs = ctx.clock.nowMs() + keptPolls * ctx.settings.pollMs;
      const kept = await releaseKept(ctx, row, { batchTag: elsewhere.batchTag, untilMs });
      return kept === null ? "lost" : "kept";
    }
    return (await releaseReady(ctx, row)) === null ? "lost" : "ready";
  };
}

/** Whether some waited in other containers when this one last looked. */
function othersWaited({ ctx, pool, signs }: Passing): boolean {
  const seen = pool.last();
  if (seen === null || ctx.clock.nowMs() - seen.seenAtMs > rememberedMs) return false;
  return signs.elsewhere(seen.view, seen.seenAtMs).length > 0;
}

interface Elsewhere {
  readonly batchTag: string;
  readonly sinceMs: number;
}

/** Who waits longest in another container for a worker like one of the run; null if nobody does, or nobody can tell. */
async function longestElsewhere(
  { ctx, report, pool, signs }: Passing,
  runTag: string,
): Promise<Elsewhere | null> {
  const seen = await pool.read().catch((fault: unknown) => report({ kind: "fault", fault }));
  if (seen === undefined) return null;
  const [longest] = signs
    .elsewhere(seen.view, ctx.clock.nowMs())
    .filter((batch) => !batch.runIsFull || batch.runTag === runTag)
    .flatMap(({ batchTag, sinceMs }) => (batchTag === null ? [] : [{ batchTag, sinceMs }]))
    .filter(({ batchTag }) => !seen.view.slots.some((row) => row.heldForBatch === batchTag))
    .toSorted((one, other) => one.sinceMs - other.sinceMs);
  return longest ?? null;
}

function comesBefore(line: WaitingLine, elsewhere: Elsewhere | null, { waiter }: Place): boolean {
  if (elsewhere === null) return false;
  return line.leasesOf(waiter.holder.batchTag).length > 0 || elsewhere.sinceMs < waiter.startedAtMs;
}

/**
 * Whether the waiter has the worker; the one who gives it is not told of a fault twice. It counts as the waiter's from
 * the moment of the offer: others may be given back in the same one.
 */
async function handOver(
  { ctx, line, pool }: Passing,
  row: WorkerRow,
  { waiter, offer }: Place,
): Promise<boolean> {
  const { runTag, batchTag } = waiter.holder;
  const waitedMs = Math.max(0, ctx.clock.nowMs() - waiter.startedAtMs);
  const holder = { ...waiter.holder, waitedMs: Number(waitedMs.toPrecision(2)) };
  const stays = row.heldForRun === runTag;
  const count = (workers: 1 | -1) => {
    if (!stays) countTaken(line, pool.last(), runTag, workers);
  };
  const forget = line.noteLease(batchTag, ctx.clock.nowMs());
  count(1);
  const handed = handOverSlot(ctx, row, holder).then((taken) => (taken === null ? null : workerOf(taken)));
  offer(handed.catch(() => null));
  let isHanded = false;
  try {
    isHanded = (await handed) !== null;
    return isHanded;
  } finally {
    forget();
    if (!isHanded) count(-1);
  }
}
