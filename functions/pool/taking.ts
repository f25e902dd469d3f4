/** Taking a worker that a look at the pool showed: one that is kept for the batch, a free one, or an expired one. */
import type { LeaseContainer } from "./lease-container.ts";
import { drawSome } from "./polling.ts";
import { countTaken, type SharedView } from "./pool-reader.ts";
import { expiredWorkers, fitWorkers, keptFor } from "./pool-view.ts";
import { type SlotRow, type WorkerRow, workerOf } from "./slot-row.ts";
import { acquireSlot } from "./slots/acquire.ts";
import { takeOverSlot } from "./slots/take-over.ts";
import type { Holder } from "./slots/write.ts";
import { isCrowded, isOurTurn } from "./turns.ts";

export interface Found {
  readonly row: WorkerRow;
  readonly how: "same_slot" | "free" | "handed_over" | "taken_over" | "created";
}

/** A free or an expired worker; null where there is none. Free ones may be left to those who have waited longer. */
export async function takeWhatIsThere(
  container: LeaseContainer,
  search: { readonly holder: Holder; readonly startedAtMs: number },
  seen: SharedView,
): Promise<Found | "left_to_others" | null> {
  const { ctx } = container;
  const nowMs = ctx.clock.nowMs();
  const waitedMs = Math.max(0, nowMs - search.startedAtMs);
  const holder = { ...search.holder, waitedMs: Number(waitedMs.toPrecision(2)) }; // rows are short of room
  const isUntried = ({ slot }: WorkerRow) => !seen.tried.has(slot);
  const fit = fitWorkers(ctx, seen.view, nowMs).filter(isUntried);
  const kept = fit.filter((row) => keptFor(seen.view, row, nowMs) === holder.batchTag);
  const free = fit.filter((row) => keptFor(seen.view, row, nowMs) === null);
  const isTurn = !othersWait(container, search, seen, nowMs) || isTurnOf(container, waitedMs, free, nowMs);
  const drawn = isTurn ? [...ownSlots(container, free), ...drawSome(free, 3, ctx.random)] : [];
  for (const row of [...kept, ...drawn].filter(isUntried)) {
    const taken = await takeOnce(container, seen, row, holder, () => acquireSlot(ctx, row.slot, holder));
    if (taken !== null) return found(taken, "free");
  }
  if (!isTurn) return "left_to_others";
  for (const row of drawSome(expiredWorkers(ctx, seen.view, nowMs).filter(isUntried), 1, ctx.random)) {
    const taken = await takeOnce(container, seen, row, holder, () => takeOverSlot(ctx, row, holder));
    if (taken !== null) return found(taken, "taken_over");
  }
  return null;
}

/** Goes for a worker that nobody of this container has gone for, and counts it for the run while that may succeed. */
async function takeOnce(
  { line }: LeaseContainer,
  seen: SharedView,
  { slot }: SlotRow,
  { runTag }: Holder,
  take: () => Promise<SlotRow | null>,
): Promise<SlotRow | null> {
  if (seen.tried.has(slot)) return null;
  seen.tried.add(slot);
  countTaken(line, seen, runTag, 1);
  let row: SlotRow | null = null;
  try {
    row = await take();
    return row;
  } finally {
    if (row === null) countTaken(line, seen, runTag, -1);
  }
}

/** Whether somebody is known to wait who may have come before. A crowd of a moment ago may have gone. */
function othersWait(
  { line, signs }: LeaseContainer,
  { holder, startedAtMs }: { readonly holder: Holder; readonly startedAtMs: number },
  { view }: SharedView,
  nowMs: number,
): boolean {
  for (const other of line.waiters())
    if (other.holder.batchTag !== holder.batchTag && other.startedAtMs <= startedAtMs) return true;
  return signs.elsewhere(view, nowMs).length > 0;
}

function isTurnOf(
  { ctx, pool }: LeaseContainer,
  waitedMs: number,
  free: readonly WorkerRow[],
  nowMs: number,
): boolean {
  const { settings, random } = ctx;
  if (free.length === 0) return true;
  const freeForMs = Math.max(...free.map((row) => nowMs - (row.lastUsedAtMs ?? row.bornAtMs ?? 0)));
  const waiter = { waitedMs, typicalMs: pool.typicalWaitMs(), freeForMs, pollMs: settings.pollMs };
  return isOurTurn(waiter, random());
}

/** Free slots that this container used, the latest first: containers that all draw from all collide. None in a crowd. */
function ownSlots(
  { ctx, recentSlots, pool }: LeaseContainer,
  free: readonly WorkerRow[],
): readonly WorkerRow[] {
  if (isCrowded(pool.typicalWaitMs(), ctx.settings.pollMs)) return [];
  return recentSlots.toReversed().flatMap((recent) => free.filter(({ slot }) => slot === recent.slot));
}

export function found(row: SlotRow | null, how: Found["how"]): Found | null {
  const worker = row === null ? null : workerOf(row);
  return worker === null ? null : { row: worker, how };
}
