/** What a dispatch knows while it goes on, shared by its parts; and how it ends. */
import { setMaxListeners } from "node:events";
import type { Board } from "./board.ts";
import type { ChunkSetup, RunningChunk } from "./chunk-run.ts";
import type { Fault } from "./faults.ts";
import { createLosses, type Losses } from "./losses.ts";
import type { Clock, WorkerLease, WorkerSource } from "./ports.ts";

export interface DispatchSetup {
  readonly board: Board;
  readonly workers: WorkerSource;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly judge: ChunkSetup["judge"];
  readonly deadlineAtMs: number;
  readonly maxWorkers: number;
  readonly signal: AbortSignal;
  /** Aborted when the deadline has come before its time. */
  readonly timeIsUp?: AbortSignal;
}

/** A worker that is here. */
export interface Service {
  readonly lease: WorkerLease;
  readonly sinceMs: number;
  /** When it came, in the order of `Losses`. */
  readonly cameAt: number;
  /** Whether it is known to have been alive since: it was created for us, or has done something. */
  isProved: boolean;
  /** What it was given and has not ended, in turn. */
  readonly chunks: RunningChunk[];
}

/** A request for a worker that is under way. */
export interface Search {
  readonly wanted: AbortController;
  /** Why it has found none yet; null: none is free. */
  trouble: Fault | null;
}

export interface Dispatch {
  readonly setup: DispatchSetup;
  /** Aborted when nothing is left to do, for whatever reason. */
  readonly stop: AbortController;
  readonly serving: Set<Promise<void>>;
  /** Workers on their way back. */
  readonly leaving: Promise<void>[];
  readonly workerIds: Set<string>;
  /** Workers that are here. */
  readonly crew: Set<Service>;
  readonly searches: Set<Search>;
  readonly searching: Set<Promise<void>>;
  readonly losses: Losses;
  /** A worker was lost: those that were idle may be, too, and are asked for a sign of life before they are used. */
  isWary: boolean;
  /** Workers in turn that were lost, or not reached, while nothing was under way. */
  lossesInTurn: number;
  /** Those that were lost so and had been alive before, all in all. */
  fruitlessLosses: number;
  /** While there is one, no worker is asked for. */
  pauses: number;
  /** While there is one, none is asked for when others are here or on their way: a request failed not long ago. */
  rests: number;
  /** Until then several are asked for at once: not long ago one was had. */
  manyUntilMs: number;
  workersHad: number;
  /** Why no worker is had, as told by those who are asked for one; null: none is free. */
  trouble: Fault | null;
  timeIsUp: boolean;
  wakeRecruiter: () => void;
  /** Why the whole batch has no answer. */
  failure: unknown;
  firstWorkerAtMs: number | null;
  workersCreated: number;
  heldMs: number;
}

export function createDispatch(setup: DispatchSetup): Dispatch {
  const stop = new AbortController();
  // Every worker listens to it, and there may be more than Node's default takes for a leak.
  setMaxListeners(0, stop.signal);
  return {
    setup,
    stop,
    serving: new Set(),
    leaving: [],
    workerIds: new Set(),
    crew: new Set(),
    searches: new Set(),
    searching: new Set(),
    losses: createLosses(setup.clock.nowMs),
    isWary: false,
    lossesInTurn: 0,
    fruitlessLosses: 0,
    pauses: 0,
    rests: 0,
    manyUntilMs: Number.POSITIVE_INFINITY,
    workersHad: 0,
    trouble: null,
    timeIsUp: false,
    wakeRecruiter: () => {},
    failure: null,
    firstWorkerAtMs: null,
    workersCreated: 0,
    heldMs: 0,
  };
}

/** Ends the dispatch; the first failure counts. */
export function stopWith(state: Dispatch, failure: unknown): void {
  if (!state.stop.signal.aborted) state.failure = failure;
  state.stop.abort();
  for (const { wanted } of state.searches) wanted.abort();
  state.wakeRecruiter();
}

/** To be called after whatever may change what should be done next. */
export function noteChange(state: Dispatch): void {
  if (state.setup.board.openPrograms() === 0) stopWith(state, null);
  state.wakeRecruiter();
}
