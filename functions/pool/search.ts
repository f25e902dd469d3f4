/**
 * One batch's search for a worker: a free one, one that another gives back, one whose holder is gone, or a new one.
 *
 * 1. The slot that this container used last, without reading anything: two writes per leased worker in all.
 * 2. Else one read of the pool: a worker that is kept for the batch, or up to three free ones in random order.
 * 3. Else a worker whose lease has expired.
 * 4. Else a new one, at the pool's pace. It takes seconds, and the search goes on meanwhile; whichever worker is there
 *    first is taken, and the other one goes to others.
 * 5. Else stand in line, for what this container's batches give back, and look again after a while; who has waited longer
 *    looks more often, and is let pass by who has not. Who waits with nothing says so, for other containers.
 *
 * A creation is never cut off when its batch stops waiting (served otherwise, done, cancelled, out of time): it goes on,
 * and the worker is published free. An abandoned one would cost a sandbox and block its slot until the sweep.
 */

import { Fault } from "../rewards/faults.ts";
import { joinSignals } from "../rewards/joined-signal.ts";
import type { AcquireOptions } from "../rewards/ports.ts";
import { batchTagOf } from "./batches/batch-tag.ts";
import type { CreationUnderWay } from "./container-creations.ts";
import type { CreationResult } from "./creation.ts";
import type { LeaseContainer } from "./lease-container.ts";
import type { LeaseDemand } from "./lease-source.ts";
import { backoffMs, drawSome, pollDelayMs } from "./polling.ts";
import { countHeld, emptySlots, type PoolView, waitingBatches } from "./pool-view.ts";
import { shortTag, type WorkerRow } from "./slot-row.ts";
import { acquireSlot } from "./slots/acquire.ts";
import type { Holder, SlotContext } from "./slots/write.ts";
import { type Found, found, takeWhatIsThere } from "./taking.ts";
import { createTrouble, type Trouble } from "./trouble.ts";
import { isCrowded, mayTakeAgain } from "./turns.ts";
import { hasWaitedLong } from "./waiting-line.ts";

/** Preflights that fail this often, and none that succeeds, won't get better while this batch waits. */
const hopelessAfter = 3;

/** One call of `acquire`. */
interface Search {
  readonly demand: LeaseDemand;
  readonly holder: Holder;
  readonly startedAtMs: number;
  readonly deadlineAtMs: number;
  readonly signal: AbortSignal;
  /** Why no worker could be had at the last look, if that was somebody's fault; the caller is told of each change. */
  readonly trouble: Trouble;
  runRoom: number;
  /** Whether a worker that another container gives back may be kept for it: it looks as often as anybody does. */
  isNext: boolean;
  creation: CreationUnderWay | null;
  /** Sandboxes of this search whose isolation was not proved. */
  unproved: number;
}

/** A worker; null when nobody waits any more, or none was free in time. Throws the fault that was the reason. */
export async function searchWorker(
  container: LeaseContainer,
  demand: LeaseDemand,
  { deadlineAtMs, signal, onTrouble }: AcquireOptions,
): Promise<Found | null> {
  const { clock } = container.ctx;
  const search: Search = {
    demand,
    holder: { runTag: shortTag(demand.runId), batchTag: batchTagOf(demand) },
    startedAtMs: clock.nowMs(),
    deadlineAtMs,
    signal,
    trouble: createTrouble(clock, onTrouble),
    runRoom: 0,
    isNext: false,
    creation: null,
    unproved: 0,
  };
  const end = container.line.begin(search);
  try {
    return await seek(container, search);
  } finally {
    end();
    search.trouble.end();
    search.creation?.leave();
  }
}

async function seek(container: LeaseContainer, search: Search): Promise<Found | null> {
  const { clock, random } = container.ctx;
  let isFirst = true;
  let storeFailures = 0;
  let retryAfterMs = 0;
  while (!search.signal.aborted && clock.nowMs() < search.deadlineAtMs) {
    try {
      const ended = takeEndedCreation(search);
      const found = ended === null ? await findNow(container, search, isFirst) : judgeCreation(search, ended);
      if (found !== null) return found;
      storeFailures = 0;
    } catch (error) {
      if (!(error instanceof Fault) || !error.retryable || isHopeless(error, search)) throw error;
      search.trouble.note(error);
      storeFailures += 1;
      retryAfterMs = error.retryAfterMs ?? 0;
      container.report({ kind: "fault", fault: error });
    }
    isFirst = false;
    const backMs = storeFailures > 0 ? Math.max(retryAfterMs, backoffMs(storeFailures, random())) : 0;
    const handed = await standInLine(container, search, backMs);
    if (handed !== null) return { row: handed, how: "handed_over" };
  }
  const fault = search.trouble.now();
  if (fault !== null && !search.signal.aborted) throw fault;
  return null;
}

function isHopeless(fault: Fault, search: Search): boolean {
  return fault.code === "isolation_failed" && search.unproved >= hopelessAfter;
}

/** Until the next look is due, the search's creation has ended, or a worker is handed over: that one. */
async function standInLine(
  { ctx, line, pool }: LeaseContainer,
  search: Search,
  backMs: number,
): Promise<WorkerRow | null> {
  const { clock, settings, random } = ctx;
  const waitedMs = clock.nowMs() - search.startedAtMs;
  const ageMs = search.isNext ? Number.POSITIVE_INFINITY : waitedMs;
  const delayMs = pollDelayMs(settings.pollMs, ageMs, pool.typicalWaitMs(), random()) + backMs;
  const place = line.enter(search);
  const moved = new AbortController();
  const { signal, leave } = joinSignals(search.signal, moved.signal);
  const napMs = Math.max(1, Math.min(delayMs, search.deadlineAtMs - clock.nowMs()));
  const events = [clock.sleep(napMs, signal), place.offered];
  if (search.creation !== null) events.push(search.creation.ended);
  await Promise.race(events);
  moved.abort(null); // a reason, or Node makes an error with its stack for each look
  leave();
  return place.leave();
}

async function findNow(container: LeaseContainer, search: Search, isFirst: boolean): Promise<Found | null> {
  const same = isFirst ? await search.trouble.watchTable(trySameSlot(container, search)) : null;
  return same ?? look(container, search);
}

async function trySameSlot(container: LeaseContainer, search: Search): Promise<Found | null> {
  const { ctx, recentSlots, pool } = container;
  const recent = recentSlots.at(-1);
  if (recent === undefined) return null;
  const nowMs = ctx.clock.nowMs();
  const lookedForMs = nowMs - (pool.last()?.seenAtMs ?? 0);
  const own = { freeForMs: nowMs - recent.sinceMs, lookedForMs, typicalMs: pool.typicalWaitMs() };
  if (!mayTakeAgain(own, ctx.settings.pollMs)) return null;
  recentSlots.pop();
  return found(await acquireSlot(ctx, recent.slot, search.holder), "same_slot");
}

/** One look at the pool, and what it allows. */
async function look(container: LeaseContainer, search: Search): Promise<Found | null> {
  const { ctx, pool } = container;
  const seen = await search.trouble.watchTable(pool.read());
  if (search.trouble.now()?.code === "store_unavailable") search.trouble.note(null); // it answers again
  const nowMs = ctx.clock.nowMs();
  const { runTag } = search.holder;
  const held = countHeld(ctx, seen.view, runTag, nowMs) + (seen.taken.get(runTag) ?? 0);
  search.runRoom = (search.demand.runWorkers ?? Number.POSITIVE_INFINITY) - held;
  const hasRoom = search.runRoom > 0;
  const there = hasRoom ? await takeWhatIsThere(container, search, seen) : null;
  if (there !== null && there !== "left_to_others") return there;
  await signIfPatient(container, search, seen.view);
  const mayCreate = hasRoom && search.creation === null && there === null;
  if (mayCreate) await beginCreation(container, search, seen.view);
  return null;
}

/** A batch that waits with nothing says so after a while. */
async function signIfPatient({ ctx, line, pool, signs }: LeaseContainer, search: Search, view: PoolView) {
  const { holder, startedAtMs, runRoom } = search;
  if (!hasWaitedLong(search, ctx.clock.nowMs()) || line.leasesOf(holder.batchTag).length > 0) return;
  search.isNext =
    !isCrowded(pool.typicalWaitMs(), ctx.settings.pollMs) && isAmongTheNext(ctx, view, holder.batchTag);
  await signs.give(holder, { sinceMs: startedAtMs, runIsFull: runRoom <= 0 }, view);
}

/** Of those who signed, about as many as may be served while one of them sleeps. */
function isAmongTheNext(ctx: SlotContext, view: PoolView, batchTag: string): boolean {
  const waiting = waitingBatches(ctx, view, ctx.clock.nowMs());
  const own = waiting.find((batch) => batch.batchTag === batchTag);
  if (own === undefined) return false;
  const before = waiting.filter(({ sinceMs }) => sinceMs < own.sinceMs).length;
  return before < Math.max(1, ctx.settings.slots / 4);
}

async function beginCreation(
  { ctx, creations }: LeaseContainer,
  search: Search,
  view: PoolView,
): Promise<void> {
  const empty = emptySlots(ctx, view);
  const limit = Math.min(ctx.settings.slots, await targetOf(search.demand));
  const isFull = empty.length === 0 || creations.countServing(view) >= limit;
  if (isFull) search.trouble.note(null); // what is missing is capacity
  if (isFull || view.nextCreateAtMs > ctx.clock.nowMs() || creations.isPaced()) return;
  const refusal = creations.refusal();
  if (refusal !== null) {
    search.trouble.note(refusal); // another search of this container met it
    return;
  }
  const [slot] = drawSome(empty, 1, ctx.random);
  if (slot !== undefined) search.creation = creations.begin(slot.slot, search);
}

async function targetOf({ targetWorkers = Number.POSITIVE_INFINITY }: LeaseDemand): Promise<number> {
  return typeof targetWorkers === "number" ? targetWorkers : targetWorkers();
}

/** What came of the search's creation, once; null while it is under way, and without one. Throws the table's faults. */
function takeEndedCreation(search: Search): CreationResult | null {
  const { creation } = search;
  if (creation === null || !creation.hasEnded()) return null;
  search.creation = null;
  return creation.take();
}

/** The worker that was created; throws where trying again is of no use. */
function judgeCreation(search: Search, result: CreationResult): Found | null {
  if (result.kind === "published") return { row: result.row, how: "created" };
  if (result.kind === "failed") {
    if (result.fault.code === "isolation_failed") search.unproved += 1;
    search.trouble.note(result.fault);
    if (!result.fault.retryable || isHopeless(result.fault, search)) throw result.fault;
  }
  return null;
}
