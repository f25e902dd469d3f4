/**
 * Where a batch's workers come from: a free one, one whose holder is gone, or a new one.
 *
 * 1. The slot that this container used last, without reading anything: two writes per leased worker in all.
 * 2. Else one read of the pool, and up to three free workers in random order.
 * 3. Else a worker whose lease has expired.
 * 4. Else a new one, at the pool's pace.
 * 5. Else sleep and look again; who has waited longer looks more often, and is let pass by who has not.
 *
 * A creation is never cut off when its batch stops waiting (done, cancelled, out of time): it goes on, and the worker
 * is published free. An abandoned one would cost a sandbox and block its slot until the sweep.
 */
import { Fault } from "../rewards/faults.ts";
import type { AcquireOptions, WorkerSource } from "../rewards/ports.ts";
import { batchTagOf } from "./batches/batch-tag.ts";
import { type ContainerCreations, createContainerCreations } from "./container-creations.ts";
import type { CreationContext, CreationResult } from "./creation.ts";
import { type HoldContext, holdLease, type PoolLease } from "./held-lease.ts";
import { backoffMs, drawSome, pollDelayMs } from "./polling.ts";
import {
  countHeld,
  emptySlots,
  expiredWorkers,
  fitWorkers,
  isAnotherRunWaiting,
  type PoolView,
  readPool,
} from "./pool-view.ts";
import { type SlotRow, shortTag, type WorkerRow, workerOf } from "./slot-row.ts";
import { acquireSlot } from "./slots/acquire.ts";
import { takeOverSlot } from "./slots/take-over.ts";
import type { Holder } from "./slots/write.ts";
import { createTrouble, type Trouble } from "./trouble.ts";
import { isCrowded, isOurTurn, mayTakeAgain, typicalWaitMs } from "./turns.ts";
import { signEveryMs, signWaiting, waitsPatientlyMs } from "./waiting.ts";

/** Preflights that fail this often, and none that succeeds, won't get better while this batch waits. */
const hopelessAfter = 3;
const lookForWaitingEveryMs = 2_000;

export type PoolContext = CreationContext & HoldContext;

export type PoolEvent =
  | {
      readonly kind: "leased";
      readonly slot: number;
      readonly how: "same_slot" | "free" | "taken_over" | "created";
    }
  | { readonly kind: "released"; readonly slot: number; readonly how: "ready" | "drained" | "lost" }
  | { readonly kind: "created"; readonly slot: number }
  | { readonly kind: "fault"; readonly fault: unknown };

/** For whom workers are leased. */
export interface LeaseDemand {
  readonly runId: string;
  readonly batchId: string;
  /** Which attempt at it this is, if the batch has a record. */
  readonly attemptNumber?: number;
  /** Workers that the run may hold at once; not looked at on the way without a read. */
  readonly runWorkers?: number;
  /** Workers that the pool should have at most, asked before a creation; all slots without it. */
  readonly targetWorkers?: number | (() => Promise<number>);
  /**
   * Whether nobody wants the batch any more (its run was finished), asked before each look: `acquire` then throws a
   * `cancelled` fault. Its workers were taken from it, and it must not take others.
   */
  readonly isOver?: () => Promise<boolean>;
}

export interface PoolWorkerSource extends WorkerSource {
  acquire(options: AcquireOptions): Promise<PoolLease | null>;
  isWantedElsewhere(): Promise<boolean>;
}

export interface LeaseSource {
  /** The source of one batch's workers. */
  forBatch(demand: LeaseDemand): PoolWorkerSource;
  /** Resolves once no creation is under way that nobody waits for. */
  settled(): Promise<void>;
  /** Why this container's last creation failed; null when it did not. */
  creationFault(): Fault | null;
}

interface Shared {
  readonly ctx: PoolContext;
  readonly report: (event: PoolEvent) => void;
  /** Slots that this container gave back healthy, the latest last. */
  readonly recentSlots: { readonly slot: number; readonly sinceMs: number }[];
  readonly creations: ContainerCreations;
  /** When it last looked at the pool, and how long one waited for a worker then. */
  lookedAtMs: number;
  typicalWaitMs: number;
  /** When this container last said of a run that it waits, and when it last looked whether another one does. */
  readonly signedAtMs: Map<string, number>;
  lookedForWaitingAtMs: number;
  /** The read of the pool that is under way: all who wait in this container look at the same one. */
  reading: Promise<SharedView> | null;
}

interface SharedView {
  readonly view: PoolView;
  /** Free and expired workers that one of this container has gone for: the others would come too late. */
  readonly tried: Set<number>;
}

/** One per container: it remembers which slots were used last. */
export function createLeaseSource(
  ctx: PoolContext,
  report: (event: PoolEvent) => void = () => {},
): LeaseSource {
  const shared: Shared = {
    ctx,
    report,
    recentSlots: [],
    creations: createContainerCreations(ctx, report),
    lookedAtMs: 0,
    typicalWaitMs: 0,
    signedAtMs: new Map(),
    lookedForWaitingAtMs: 0,
    reading: null,
  };
  return {
    forBatch: (demand) => ({
      acquire: (options) => acquire(shared, newSearch(shared, demand, options)),
      isWantedElsewhere: () => isWantedElsewhere(shared, shortTag(demand.runId)),
    }),
    settled: shared.creations.settled,
    creationFault: shared.creations.lastFault,
  };
}

/** One call of `acquire`. */
interface Search {
  readonly demand: LeaseDemand;
  readonly holder: Holder;
  readonly startedAtMs: number;
  readonly deadlineAtMs: number;
  readonly signal: AbortSignal;
  /** Why no worker could be had at the last look, if that was somebody's fault; the caller is told of each change. */
  readonly trouble: Trouble;
  /** Sandboxes of this search whose isolation was not proved. */
  unproved: number;
}

type Found = { readonly row: WorkerRow; readonly how: "same_slot" | "free" | "taken_over" | "created" };

function newSearch({ ctx }: Shared, demand: LeaseDemand, options: AcquireOptions): Search {
  const holder = { runTag: shortTag(demand.runId), batchTag: batchTagOf(demand) };
  const trouble = createTrouble(ctx.clock, options.onTrouble);
  return { demand, holder, startedAtMs: ctx.clock.nowMs(), ...options, trouble, unproved: 0 };
}

async function acquire(shared: Shared, search: Search): Promise<PoolLease | null> {
  const { clock, settings, random } = shared.ctx;
  let first = true;
  let storeFailures = 0;
  let retryAfterMs = 0;
  while (!isOver(shared, search)) {
    try {
      const found =
        (first ? await search.trouble.watchTable(trySameSlot(shared, search)) : null) ??
        (await look(shared, search));
      if (found !== null) return await handOut(shared, search, found);
      storeFailures = 0;
    } catch (error) {
      if (!(error instanceof Fault) || !error.retryable || isHopeless(error, search)) throw error;
      search.trouble.note(error);
      storeFailures += 1;
      retryAfterMs = error.retryAfterMs ?? 0;
      shared.report({ kind: "fault", fault: error });
    }
    first = false;
    const waitedMs = clock.nowMs() - search.startedAtMs;
    const delayMs =
      pollDelayMs(settings.pollMs, waitedMs, shared.typicalWaitMs, random()) +
      (storeFailures > 0 ? Math.max(retryAfterMs, backoffMs(storeFailures, random())) : 0);
    await clock.sleep(Math.max(1, Math.min(delayMs, search.deadlineAtMs - clock.nowMs())), search.signal);
  }
  const fault = search.trouble.now();
  if (fault !== null && !search.signal.aborted) throw fault;
  return null;
}

function isOver({ ctx }: Shared, search: Search): boolean {
  return search.signal.aborted || ctx.clock.nowMs() >= search.deadlineAtMs;
}

function isHopeless(fault: Fault, search: Search): boolean {
  return fault.code === "isolation_failed" && search.unproved >= hopelessAfter;
}

async function trySameSlot(shared: Shared, search: Search): Promise<Found | null> {
  const recent = shared.recentSlots.at(-1);
  if (recent === undefined) return null;
  const { clock, settings } = shared.ctx;
  const nowMs = clock.nowMs();
  const lookedForMs = nowMs - shared.lookedAtMs;
  const own = { freeForMs: nowMs - recent.sinceMs, lookedForMs, typicalMs: shared.typicalWaitMs };
  if (!mayTakeAgain(own, settings.pollMs)) return null;
  shared.recentSlots.pop();
  return found(await acquireSlot(shared.ctx, recent.slot, search.holder), "same_slot");
}

/** One look at the pool, and what it allows. */
async function look(shared: Shared, search: Search): Promise<Found | null> {
  const { ctx } = shared;
  if (await search.demand.isOver?.()) {
    throw new Fault("cancelled", "the batch's run was finished", { retryable: false });
  }
  const { view, tried } = await search.trouble.watchTable(readShared(shared));
  const isUntried = ({ slot }: WorkerRow) => !tried.has(slot);
  if (search.trouble.now()?.code === "store_unavailable") search.trouble.note(null); // it answers again
  await signIfPatient(shared, search, view);
  const nowMs = ctx.clock.nowMs();
  shared.lookedAtMs = nowMs;
  shared.typicalWaitMs = typicalWaitMs(view, nowMs);
  const allowed = search.demand.runWorkers ?? Number.POSITIVE_INFINITY;
  if (countHeld(ctx, view, search.holder.runTag, nowMs) >= allowed) return null;
  const waitedMs = Math.max(0, nowMs - search.startedAtMs);
  const holder = { ...search.holder, waitedMs: Number(waitedMs.toPrecision(2)) }; // rows are short of room
  const fit = fitWorkers(ctx, view, nowMs).filter(isUntried);
  if (!isTurnOf(shared, waitedMs, fit, nowMs)) return null;
  for (const row of [...ownSlots(shared, fit), ...drawSome(fit, 3, ctx.random)]) {
    if (tried.has(row.slot)) continue;
    tried.add(row.slot);
    const free = found(await acquireSlot(ctx, row.slot, holder), "free");
    if (free !== null) return free;
  }
  for (const row of drawSome(expiredWorkers(ctx, view, nowMs).filter(isUntried), 1, ctx.random)) {
    tried.add(row.slot);
    const orphan = found(await takeOverSlot(ctx, row, holder), "taken_over");
    if (orphan !== null) return orphan;
  }
  return create(shared, search, view);
}

function isTurnOf(shared: Shared, waitedMs: number, free: readonly WorkerRow[], nowMs: number): boolean {
  const { settings, random } = shared.ctx;
  if (free.length === 0) return true;
  const freeForMs = Math.max(...free.map((row) => nowMs - (row.lastUsedAtMs ?? row.bornAtMs ?? 0)));
  const waiter = { waitedMs, typicalMs: shared.typicalWaitMs, freeForMs, pollMs: settings.pollMs };
  return isOurTurn(waiter, random());
}

/** A run that waits with nothing says so after a while, for handlers that hold several workers. */
async function signIfPatient({ ctx, signedAtMs, report }: Shared, search: Search, view: PoolView) {
  const { runTag } = search.holder;
  const nowMs = ctx.clock.nowMs();
  const isPatient = nowMs - search.startedAtMs >= waitsPatientlyMs;
  if (!isPatient || nowMs - (signedAtMs.get(runTag) ?? 0) < signEveryMs) return;
  if (countHeld(ctx, view, runTag, nowMs) > 0 || fitWorkers(ctx, view, nowMs).length > 0) return;
  signedAtMs.set(runTag, nowMs);
  await signWaiting(ctx, runTag).catch((fault: unknown) => report({ kind: "fault", fault }));
}

/** Looks at most every other second, for the whole container: chunks may be short. Never throws. */
async function isWantedElsewhere(shared: Shared, ownTag: string): Promise<boolean> {
  const { ctx, report } = shared;
  const nowMs = ctx.clock.nowMs();
  if (nowMs - shared.lookedForWaitingAtMs < lookForWaitingEveryMs) return false;
  shared.lookedForWaitingAtMs = nowMs;
  try {
    const { view } = await readShared(shared);
    return isAnotherRunWaiting(ctx, view, ownTag, nowMs);
  } catch (fault) {
    report({ kind: "fault", fault });
    return false;
  }
}

function readShared(shared: Shared): Promise<SharedView> {
  shared.reading ??= readPool(shared.ctx)
    .then((view) => ({ view, tried: new Set<number>() }))
    .finally(() => {
      shared.reading = null;
    });
  return shared.reading;
}

function found(row: SlotRow | null, how: Found["how"]): Found | null {
  const worker = row === null ? null : workerOf(row);
  return worker === null ? null : { row: worker, how };
}

async function create(shared: Shared, search: Search, view: PoolView): Promise<Found | null> {
  const { ctx, creations } = shared;
  const nowMs = ctx.clock.nowMs();
  const empty = emptySlots(ctx, view);
  const limit = Math.min(ctx.settings.slots, await targetOf(search.demand));
  const isFull = empty.length === 0 || creations.countServing(view) >= limit;
  if (isFull) search.trouble.note(null); // what is missing is capacity
  if (isFull || view.nextCreateAtMs > nowMs) return null;
  const refusal = creations.refusal();
  if (refusal !== null) {
    search.trouble.note(refusal); // another search of this container met it
    return null;
  }
  const [slot] = drawSome(empty, 1, ctx.random);
  if (slot === undefined) return null;
  const result = await creations.create(slot.slot, search);
  return result === null ? null : afterCreation(search, result);
}

async function targetOf({ targetWorkers = Number.POSITIVE_INFINITY }: LeaseDemand): Promise<number> {
  return typeof targetWorkers === "number" ? targetWorkers : targetWorkers();
}

function afterCreation(search: Search, result: CreationResult): Found | null {
  if (result.kind === "published") return { row: result.row, how: "created" };
  if (result.kind === "failed") {
    if (result.fault.code === "isolation_failed") search.unproved += 1;
    search.trouble.note(result.fault);
    if (!result.fault.retryable || isHopeless(result.fault, search)) throw result.fault;
  }
  return null;
}

/** Free slots that this container used, the latest first: containers that all draw from all collide. None in a crowd. */
function ownSlots({ ctx, recentSlots, typicalWaitMs }: Shared, free: readonly WorkerRow[]): WorkerRow[] {
  if (isCrowded(typicalWaitMs, ctx.settings.pollMs)) return [];
  return recentSlots.toReversed().flatMap((recent) => free.filter(({ slot }) => slot === recent.slot));
}

function noteReleased({ ctx, recentSlots }: Shared, slot: number, isReady: boolean): void {
  const before = recentSlots.findIndex((recent) => recent.slot === slot);
  if (before >= 0) recentSlots.splice(before, 1);
  if (isReady) recentSlots.push({ slot, sinceMs: ctx.clock.nowMs() });
}

async function handOut(shared: Shared, search: Search, { row, how }: Found): Promise<PoolLease | null> {
  const lease = holdLease(shared.ctx, row, {
    created: how === "created",
    onReleased: (slot, released) => {
      noteReleased(shared, slot, released === "ready");
      shared.report({ kind: "released", slot, how: released });
    },
    onFault: (fault) => shared.report({ kind: "fault", fault }),
  });
  shared.report({ kind: "leased", slot: row.slot, how });
  if (!search.signal.aborted) return lease;
  await lease.release("healthy"); // nobody is there to take it
  return null;
}
