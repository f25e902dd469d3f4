/** One strongly consistent read of the whole pool. */
import type { StoredRow } from "./ports.ts";
import {
  poolPartition,
  readSlotRow,
  type SlotRow,
  unusedSlot,
  type WorkerRow,
  workerOf,
} from "./slot-row.ts";
import { nextCreateAtMs, pacingKey } from "./slots/pacing.ts";
import type { SlotContext } from "./slots/write.ts";
import { isBelieved, readWaiting, type WaitingBatch } from "./waiting.ts";

export interface PoolView {
  /** One per slot of the settings, in order, and after them what lies above (the pool was made smaller). */
  readonly slots: readonly SlotRow[];
  /** From when the next creation may be admitted. */
  readonly nextCreateAtMs: number;
  /** Batches that said they wait with no worker at all, some of them some time ago. */
  readonly waiting: readonly WaitingBatch[];
}

/** Reads all slots and the pacing in one query; throws a `Fault` rather than show a part of them. */
export async function readPool(ctx: SlotContext): Promise<PoolView> {
  const rows = await ctx.table.query(poolPartition);
  const bySlot = new Map<number, SlotRow>();
  let pacing: StoredRow | undefined;
  for (const stored of rows) {
    if (stored.sk === pacingKey.sk) pacing = stored;
    const row = readSlotRow(stored);
    if (row !== null) bySlot.set(row.slot, row);
  }
  const wanted = Array.from(
    { length: ctx.settings.slots },
    (_, slot) => bySlot.get(slot) ?? unusedSlot(slot),
  );
  const above = [...bySlot.values()].filter((row) => row.slot >= ctx.settings.slots);
  const waiting = rows.flatMap((stored) => readWaiting(stored) ?? []);
  return { slots: [...wanted, ...above], nextCreateAtMs: nextCreateAtMs(ctx, pacing), waiting };
}

/** Free workers that a handler of this version may acquire. */
export function fitWorkers({ settings }: SlotContext, view: PoolView, nowMs: number): WorkerRow[] {
  return workersThat(view, settings.slots, (row) => row.state === "ready" && isFit(row, settings, nowMs));
}

/** Workers whose lease is over and that are fit to be taken over. */
export function expiredWorkers({ settings }: SlotContext, view: PoolView, nowMs: number): WorkerRow[] {
  const isExpired = (row: WorkerRow) =>
    row.state === "leased" &&
    (row.leaseUntilMs ?? 0) < nowMs - settings.graceMs &&
    isFit(row, settings, nowMs);
  return workersThat(view, settings.slots, isExpired);
}

/** Slots in which a worker may be created. */
export function emptySlots({ settings }: SlotContext, view: PoolView): SlotRow[] {
  return view.slots.filter((row) => row.slot < settings.slots && row.state === "empty");
}

/**
 * Slots that have a worker of use or are about to. Neither those that are drained, nor those of another version (while a
 * deploy is under way each version has its own), nor those whose creation is past its time, or is known to have failed
 * without a sure end (`failed` has their generations by slot): until the sweep has freed them, those whom they were for
 * need other ones.
 */
export function countServing(
  { settings }: SlotContext,
  view: PoolView,
  nowMs: number,
  failed: ReadonlyMap<number, number>,
): number {
  const isServing = ({ slot, state, generation, leaseUntilMs = 0, supervisorVersion }: SlotRow) => {
    if (supervisorVersion !== settings.supervisorVersion) return false;
    if (state !== "creating") return state === "ready" || state === "leased";
    const claimedAtMs = leaseUntilMs - settings.createLeaseMs;
    const isOld = claimedAtMs + settings.createTimeoutMs < nowMs - settings.graceMs;
    return !isOld && failed.get(slot) !== generation;
  };
  return view.slots.filter(isServing).length;
}

function workersThat(view: PoolView, slots: number, holds: (row: WorkerRow) => boolean): WorkerRow[] {
  return view.slots.flatMap((row) => {
    const worker = row.slot < slots ? workerOf(row) : null;
    return worker !== null && holds(worker) ? [worker] : [];
  });
}

function isFit(row: WorkerRow, settings: SlotContext["settings"], nowMs: number): boolean {
  const neededUntilMs = nowMs + settings.minRemainingMs;
  return (
    row.ttlAtMs > neededUntilMs &&
    row.maxAtMs > neededUntilMs &&
    row.supervisorVersion === settings.supervisorVersion
  );
}

/** Batches that wait with no worker at all, as far as they are believed. */
export function waitingBatches(ctx: SlotContext, view: PoolView, nowMs: number): WaitingBatch[] {
  const hasNone = ({ runTag, batchTag }: WaitingBatch) =>
    batchTag === null ? countHeld(ctx, view, runTag, nowMs) === 0 : !isHolding(view, batchTag);
  return view.waiting.filter(
    (waiting) => isBelieved(waiting, nowMs, ctx.settings.graceMs) && hasNone(waiting),
  );
}

/** Whether the batch holds a worker. */
export function isHolding(view: PoolView, batchTag: string): boolean {
  return view.slots.some((row) => row.state === "leased" && row.heldForBatch === batchTag);
}

/**
 * The batch that a free worker is kept for; null when it is anybody's. One that has a worker by now needs no other, and
 * one that didn't come for it in time won't.
 */
export function keptFor(view: PoolView, row: SlotRow, nowMs: number): string | null {
  const { state, heldForBatch, leaseUntilMs = 0, lastUsedAtMs = 0 } = row;
  if (state !== "ready" || heldForBatch === undefined) return null;
  // The two times are of one clock, and tell for how long; the second condition is for clocks that differ.
  const isOver = leaseUntilMs <= nowMs || nowMs < lastUsedAtMs - (leaseUntilMs - lastUsedAtMs);
  return isOver || isHolding(view, heldForBatch) ? null : heldForBatch;
}

/** Workers that batches of the run hold; one whose lease is over is there to be taken, by the run itself too. */
export function countHeld({ settings }: SlotContext, view: PoolView, runTag: string, nowMs: number): number {
  const isHeld = (row: SlotRow) =>
    row.state === "leased" &&
    row.heldForRun === runTag &&
    (row.leaseUntilMs ?? 0) >= nowMs - settings.graceMs;
  return view.slots.filter(isHeld).length;
}
