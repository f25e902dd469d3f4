/**
 * Those of one container who wait for a worker, and what its batches hold.
 *
 * A worker that is given back goes from hand to hand here, so nobody has to look at the table for it. Batches that have
 * no worker come first, and among equals who has waited longest; but nobody whose time is nearly up: where many wait that
 * would give each worker to a batch that can't be graded in time, one after the other.
 */
import type { CreationUnderWay } from "./container-creations.ts";
import type { WorkerRow } from "./slot-row.ts";
import type { Holder } from "./slots/write.ts";
import { creationTakesMs } from "./trouble.ts";
import { waitsPatientlyMs } from "./waiting.ts";

export interface Waiter {
  readonly holder: Holder;
  readonly startedAtMs: number;
  readonly deadlineAtMs: number;
  /** How many more workers its run may hold: as of the waiter's last look at the pool, less what the run got here since. */
  runRoom: number;
  /** Its own creation of a worker, while it is under way. */
  readonly creation: CreationUnderWay | null;
}

/** Whether others should know that it waits. One that has a creation under way is served soon, unless that is overdue. */
export function hasWaitedLong(
  { startedAtMs, creation }: Pick<Waiter, "startedAtMs" | "creation">,
  nowMs: number,
): boolean {
  return nowMs - startedAtMs >= (creation === null ? waitsPatientlyMs : creationTakesMs);
}

/** So much of its time must be left to be of use to a batch, or a third of it where that is short. */
const usefulMs = 5_000;

function hasTimeLeft({ startedAtMs, deadlineAtMs }: Waiter, nowMs: number): boolean {
  return deadlineAtMs - nowMs >= Math.min(usefulMs, (deadlineAtMs - startedAtMs) / 3);
}

/** A waiter's place in the line, while it has nothing else to do. */
export interface Place {
  readonly waiter: Waiter;
  /** Resolves once a worker is offered. */
  readonly offered: Promise<void>;
  /** Offers a worker that is being handed over; null if that comes to nothing. Never rejects. */
  offer(worker: Promise<WorkerRow | null>): void;
  /** Leaves the line, with the worker that was offered meanwhile. */
  leave(): Promise<WorkerRow | null>;
}

export interface WaitingLine {
  /** A search begins; its end is told by the answer. */
  begin(waiter: Waiter): () => void;
  enter(waiter: Waiter): Place;
  /** Who should have a worker that a batch of the run gives back. */
  first(runTag: string, nowMs: number): Place | null;
  /** Those who search, whether they stand in line or look around. */
  waiters(): Iterable<Waiter>;
  /** The run gets a worker here that it did not have, or didn't get it after all (-1). */
  noteTaken(runTag: string, workers: 1 | -1): void;
  /** A batch has a worker; the answer is told when it gives that back. */
  noteLease(batchTag: string, leasedAtMs: number): () => void;
  /** Since when the batch has each of its workers. */
  leasesOf(batchTag: string): number[];
}

export function createWaitingLine(): WaitingLine {
  const searching = new Set<Waiter>();
  const line = new Set<Place>();
  const leases = new Set<{ readonly batchTag: string; readonly leasedAtMs: number }>();
  const leasesOf = (batchTag: string) =>
    [...leases].flatMap((lease) => (lease.batchTag === batchTag ? [lease.leasedAtMs] : []));
  const comesBefore = (one: Waiter, other: Waiter) => {
    const held = [one, other].map(({ holder }) => Math.min(1, leasesOf(holder.batchTag).length));
    return held[0] === held[1] ? one.startedAtMs < other.startedAtMs : (held[0] ?? 0) < (held[1] ?? 0);
  };
  return {
    begin(waiter) {
      searching.add(waiter);
      return () => searching.delete(waiter);
    },
    enter(waiter) {
      const place = createPlace(waiter, () => line.delete(place));
      line.add(place);
      return place;
    },
    first(runTag, nowMs) {
      let first: Place | null = null;
      for (const place of line) {
        if (!isOfUse(place.waiter, runTag) || !hasTimeLeft(place.waiter, nowMs)) continue;
        if (first === null || comesBefore(place.waiter, first.waiter)) first = place;
      }
      return first;
    },
    waiters: () => searching,
    noteTaken(runTag, workers) {
      for (const waiter of searching) if (waiter.holder.runTag === runTag) waiter.runRoom -= workers;
    },
    noteLease(batchTag, leasedAtMs) {
      const lease = { batchTag, leasedAtMs };
      leases.add(lease);
      return () => leases.delete(lease);
    },
    leasesOf,
  };
}

/** Whether a worker that a batch of the run gives back is one that the waiter may have. */
export function isOfUse({ holder, runRoom }: Waiter, runTag: string): boolean {
  return runRoom > 0 || holder.runTag === runTag;
}

function createPlace(waiter: Waiter, leaveLine: () => void): Place {
  let worker: Promise<WorkerRow | null> = Promise.resolve(null);
  let noteOffer = () => {};
  const offered = new Promise<void>((resolve) => {
    noteOffer = resolve;
  });
  return {
    waiter,
    offered,
    offer(handed) {
      worker = handed;
      leaveLine();
      noteOffer();
    },
    leave() {
      leaveLine();
      return worker;
    },
  };
}
