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
import type { WorkerSource } from "../rewards/ports.ts";
import { type CreationContext, type CreationResult, createWorker } from "./creation.ts";
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
import { releaseReady } from "./slots/release.ts";
import { takeOverSlot } from "./slots/take-over.ts";
import type { Holder } from "./slots/write.ts";
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

type AcquireOptions = Parameters<WorkerSource["acquire"]>[0];

export interface PoolWorkerSource extends WorkerSource {
  acquire(options: AcquireOptions): Promise<PoolLease | null>;
  isWantedElsewhere(): Promise<boolean>;
}

export interface LeaseSource {
  /** The source of one batch's workers. */
  forBatch(demand: LeaseDemand): PoolWorkerSource;
  /** Resolves once no creation is under way that nobody waits for. */
  settled(): Promise<void>;
}

interface Shared {
  readonly ctx: PoolContext;
  readonly report: (event: PoolEvent) => void;
  /** Slots that this container gave back healthy, the latest last. */
  readonly recentSlots: { readonly slot: number; readonly sinceMs: number }[];
  readonly creations: Set<Promise<unknown>>;
  /** Creations of this container that failed in a row, and why the last did. */
  failures: number;
  lastFault: Fault | null;
  createNotBeforeMs: number;
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
    creations: new Set(),
    failures: 0,
    lastFault: null,
    createNotBeforeMs: 0,
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
    settled: async () => {
      while (shared.creations.size > 0) await Promise.allSettled(shared.creations);
    },
  };
}

/** One call of `acquire`. */
interface Search {
  readonly demand: LeaseDemand;
  readonly holder: Holder;
  readonly startedAtMs: number;
  readonly deadlineAtMs: number;
  readonly signal: AbortSignal;
  /** Why no worker could be had at the last look, if that was somebody's fault. */
  fault: Fault | null;
  /** Sandboxes of this search whose isolation was not proved. */
  unproved: number;
}

type Found = { readonly row: WorkerRow; readonly how: "same_slot" | "free" | "taken_over" | "created" };

function newSearch({ ctx }: Shared, demand: LeaseDemand, options: AcquireOptions): Search {
  const holder = { runTag: shortTag(demand.runId), batchTag: shortTag(demand.batchId) };
  return { demand, holder, startedAtMs: ctx.clock.nowMs(), ...options, fault: null, unproved: 0 };
}

async function acquire(shared: Shared, search: Search): Promise<PoolLease | null> {
  const { clock, settings, random } = shared.ctx;
  let first = true;
  let storeFailures = 0;
  while (!isOver(shared, search)) {
    try {
      const found = (first ? await trySameSlot(shared, search) : null) ?? (await look(shared, search));
      if (found !== null) return await handOut(shared, search, found);
      storeFailures = 0;
    } catch (error) {
      if (!(error instanceof Fault) || !error.retryable || isHopeless(error, search)) throw error;
      search.fault = error;
      storeFailures += 1;
      shared.report({ kind: "fault", fault: error });
    }
    first = false;
    const waitedMs = clock.nowMs() - search.startedAtMs;
    const delayMs =
      pollDelayMs(settings.pollMs, waitedMs, shared.typicalWaitMs, random()) +
      (storeFailures > 0 ? backoffMs(storeFailures, random()) : 0);
    await clock.sleep(Math.max(1, Math.min(delayMs, search.deadlineAtMs - clock.nowMs())), search.signal);
  }
  if (search.fault !== null && !search.signal.aborted) throw search.fault;
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
  const { view, tried } = await readShared(shared);
  const isUntried = ({ slot }: WorkerRow) => !tried.has(slot);
  if (search.fault?.code === "store_unavailable") search.fault = null; // it answers again
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
  const { ctx } = shared;
  const nowMs = ctx.clock.nowMs();
  const empty = emptySlots(ctx, view);
  const occupied = view.slots.filter((row) => row.state !== "empty").length;
  const limit = Math.min(ctx.settings.slots, await targetOf(search.demand));
  const isFull = empty.length === 0 || occupied >= limit;
  if (isFull) search.fault = null; // what is missing is capacity
  if (isFull || view.nextCreateAtMs > nowMs) return null;
  if (shared.createNotBeforeMs > nowMs) {
    search.fault = shared.lastFault; // another search of this container met it
    return null;
  }
  const [slot] = drawSome(empty, 1, ctx.random);
  if (slot === undefined) return null;
  const result = await createWhileWaitedFor(shared, search, slot.slot);
  if (result === null) return null;
  return afterCreation(search, result);
}

async function targetOf({ targetWorkers = Number.POSITIVE_INFINITY }: LeaseDemand): Promise<number> {
  return typeof targetWorkers === "number" ? targetWorkers : targetWorkers();
}

function afterCreation(search: Search, result: CreationResult): Found | null {
  if (result.kind === "published") return { row: result.row, how: "created" };
  if (result.kind === "failed") {
    if (result.fault.code === "isolation_failed") search.unproved += 1;
    search.fault = result.fault;
    if (!result.fault.retryable || isHopeless(result.fault, search)) throw result.fault;
  }
  return null;
}

/** Runs a creation, and leaves it to itself when the search is over first; null then. */
async function createWhileWaitedFor(
  shared: Shared,
  search: Search,
  slot: number,
): Promise<CreationResult | null> {
  const { ctx } = shared;
  let waitedFor = true;
  const creation = createWorker(ctx, slot, search.holder.runTag, () =>
    waitedFor ? search.holder : null,
  ).then((result) => noteCreation(shared, result));
  const done = new AbortController();
  const timeIsUp = ctx.clock
    .sleep(search.deadlineAtMs - ctx.clock.nowMs(), AbortSignal.any([search.signal, done.signal]))
    .then(() => null);
  try {
    const first = await Promise.race([creation, timeIsUp]);
    if (first !== null) return first;
    waitedFor = false;
    leaveToItself(shared, creation);
    return null;
  } finally {
    done.abort();
  }
}

function leaveToItself(shared: Shared, creation: Promise<CreationResult>): void {
  const freed = creation
    .then(async (result) => {
      // It may have been published as leased in the very moment in which the search gave up.
      if (result.kind === "published" && result.row.state === "leased")
        await releaseReady(shared.ctx, result.row);
    })
    .catch((fault: unknown) => shared.report({ kind: "fault", fault }))
    .finally(() => shared.creations.delete(freed));
  shared.creations.add(freed);
}

/** Backs off, for the whole container, while the provider refuses. */
function noteCreation(shared: Shared, result: CreationResult): CreationResult {
  const { ctx, report } = shared;
  if (result.kind === "published") {
    shared.failures = 0;
    report({ kind: "created", slot: result.row.slot });
  }
  if (result.kind === "failed") {
    shared.failures += 1;
    shared.lastFault = result.fault;
    shared.createNotBeforeMs = ctx.clock.nowMs() + backoffMs(shared.failures, ctx.random());
    report({ kind: "fault", fault: result.fault });
  }
  return result;
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
