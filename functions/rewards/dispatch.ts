/**
 * Workers and the work that waits for them.
 *
 * Theory of operation
 * - One loop asks for workers, one at a time, while cases wait and fewer workers are here than the work is worth. The
 *   request is dropped when nothing waits any more.
 * - Each worker takes a chunk, runs it, takes the next one: just before it has ended the first, so that it need not
 *   wait for a round trip in between. It is released when nothing waits or when it broke.
 * - When no worker can be had but some are here, they go on, and the loop asks again after a rest, or at once when they
 *   are gone.
 * - Everything ends through one signal: all programs settled, the deadline, the caller's cancellation, or a bug.
 *   Whichever it was, every lease is released: before `dispatch` throws, or while its report is used.
 * - A batch of which no program was started when its time was up is refused as a whole, for the reason that kept its
 *   workers away; one that was begun has an answer, in which what has not ended has no reward.
 */
import { setMaxListeners } from "node:events";
import type { Board } from "./board.ts";
import { type ChunkSetup, deadlineExceeded, runChunk } from "./chunk-run.ts";
import { endsBatch, Fault, whyStopped } from "./faults.ts";
import { joinSignals } from "./joined-signal.ts";
import type { Clock, WorkerLease, WorkerSource } from "./ports.ts";
import { noCapacity, nothingStarted } from "./unstarted.ts";

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

export interface DispatchReport {
  /** When the first worker was had; null when none was. */
  readonly firstWorkerAtMs: number | null;
  readonly workerIds: ReadonlySet<string>;
  readonly workersCreated: number;
  /** Until each worker was given back, added up. */
  readonly heldMs: number;
  /** Resolves when all workers are back in the pool; to be awaited. */
  readonly released: Promise<void>;
}

/** A worker is worth asking for when it would have so many cases to run. */
const CASES_PER_WORKER = 16;
/** A worker is given its next chunk when the present one will last no longer: a few round trips. */
const AHEAD_MS = 250;
/** Between a request for a worker that failed and the next one, while other workers are here. */
const REST_MS = 5_000;
/** A worker with less of its life left is given back: a case may take three minutes, at its limit's hard cap. */
const LIFE_LEFT_MS = 180_000;
/** A batch that is over soon need not ask who else would like its workers. */
const YIELD_AFTER_MS = 3_000;

interface Dispatch {
  readonly setup: DispatchSetup;
  /** Aborted when nothing is left to do, for whatever reason. */
  readonly stop: AbortController;
  readonly serving: Set<Promise<void>>;
  /** Workers on their way back. */
  readonly leaving: Promise<void>[];
  readonly workerIds: Set<string>;
  /** Workers that are here. */
  crew: number;
  /** Until then no worker is asked for while others are here: the last request failed. */
  restUntilMs: number;
  pendingAcquire: AbortController | null;
  /** Why no worker is had, as told by who is asked for one; null: none is free. */
  trouble: Fault | null;
  timeIsUp: boolean;
  wakeRecruiter: () => void;
  /** Why the whole batch has no answer. */
  failure: unknown;
  firstWorkerAtMs: number | null;
  workersCreated: number;
  heldMs: number;
}

/**
 * Settles every program of the board, or throws: a `Fault` that concerns the whole batch (no worker could be had and
 * no program was started, or it was cancelled), or whatever unexpected error a worker's adapter threw.
 */
export async function dispatch(setup: DispatchSetup): Promise<DispatchReport> {
  const state = createDispatch(setup);
  const cancel = () => stopWith(state, whyStopped(setup.signal));
  setup.signal.addEventListener("abort", cancel, { once: true });
  if (setup.signal.aborted) cancel();
  const deadline = watchDeadline(state);
  noteChange(state);
  try {
    await recruit(state);
  } catch (error) {
    stopWith(state, error);
  }
  while (state.serving.size > 0) await Promise.all(state.serving);
  setup.signal.removeEventListener("abort", cancel);
  await deadline;
  const released = Promise.all(state.leaving).then(() => {});
  const hasNothing = state.timeIsUp && setup.board.programsRun() === 0;
  if (state.failure !== null || hasNothing) {
    await released;
    throw state.failure ?? explainNothing(state);
  }
  const { firstWorkerAtMs, workerIds, workersCreated, heldMs } = state;
  return { firstWorkerAtMs, workerIds, workersCreated, heldMs, released };
}

function createDispatch(setup: DispatchSetup): Dispatch {
  const stop = new AbortController();
  // Every worker listens to it, and there may be more than Node's default takes for a leak.
  setMaxListeners(0, stop.signal);
  return {
    setup,
    stop,
    serving: new Set(),
    leaving: [],
    workerIds: new Set(),
    crew: 0,
    restUntilMs: 0,
    pendingAcquire: null,
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
function stopWith(state: Dispatch, failure: unknown): void {
  if (!state.stop.signal.aborted) state.failure = failure;
  state.stop.abort();
  state.pendingAcquire?.abort();
  state.wakeRecruiter();
}

/** To be called after whatever may change what should be done next. */
function noteChange(state: Dispatch): void {
  const { board } = state.setup;
  if (board.openPrograms() === 0) stopWith(state, null);
  if (board.queuedCases() === 0) state.pendingAcquire?.abort();
  state.wakeRecruiter();
}

async function watchDeadline(state: Dispatch): Promise<void> {
  const { clock, deadlineAtMs, timeIsUp } = state.setup;
  const end = joinSignals(state.stop.signal, timeIsUp);
  await clock.sleep(Math.max(0, deadlineAtMs - clock.nowMs()), end.signal);
  end.leave();
  if (state.stop.signal.aborted) return;
  state.timeIsUp = true;
  if (state.setup.board.programsRun() === 0) stopWith(state, explainNothing(state));
  else state.setup.board.failAll(state.crew === 0 ? (state.trouble ?? noCapacity()) : deadlineExceeded());
  noteChange(state);
}

function explainNothing({ firstWorkerAtMs, trouble, setup }: Dispatch): Fault {
  if (firstWorkerAtMs === null) return trouble ?? noCapacity();
  return nothingStarted(setup.clock.nowMs() - firstWorkerAtMs);
}

/** No worker can be had: the fault of the batch when nothing was started, else of what is still open. */
function giveUp(state: Dispatch, fault: Fault): void {
  if (state.setup.board.programsRun() === 0) stopWith(state, fault);
  else state.setup.board.failAll(fault);
  noteChange(state);
}

async function recruit(state: Dispatch): Promise<void> {
  while (!state.stop.signal.aborted) {
    if (!wantsWorker(state)) {
      await waitForChange(state);
      continue;
    }
    const had = await acquire(state);
    if (had instanceof Fault) {
      const isHopeless = had.code === "misconfigured" && state.setup.board.programsRun() === 0;
      if (isHopeless || endsBatch(had)) stopWith(state, had);
      else if (state.crew === 0) giveUp(state, had);
      else rest(state);
    } else if (had !== null) {
      enlist(state, had);
    }
  }
}

function rest(state: Dispatch): void {
  const { clock } = state.setup;
  state.restUntilMs = clock.nowMs() + REST_MS;
  void clock.sleep(REST_MS, state.stop.signal).then(() => state.wakeRecruiter());
}

function waitForChange(state: Dispatch): Promise<void> {
  return new Promise((resolve) => {
    state.wakeRecruiter = resolve;
  });
}

function wantsWorker(state: Dispatch): boolean {
  if (state.setup.board.queuedCases() === 0) return false;
  if (state.crew > 0 && state.setup.clock.nowMs() < state.restUntilMs) return false;
  return state.crew < countWorthwhile(state);
}

/** How many workers the open work is worth. */
function countWorthwhile(state: Dispatch): number {
  const { board, maxWorkers } = state.setup;
  return Math.min(maxWorkers, Math.ceil(board.openCases() / CASES_PER_WORKER) + board.queuedAlone());
}

/** A lease; the fault that says why there is none; null when it is no longer wanted. */
async function acquire(state: Dispatch): Promise<WorkerLease | Fault | null> {
  const wanted = new AbortController();
  state.pendingAcquire = wanted;
  state.trouble = null;
  try {
    const { deadlineAtMs, workers } = state.setup;
    const onTrouble = (trouble: Fault | null) => {
      if (state.pendingAcquire === wanted) state.trouble = trouble;
    };
    const lease = await workers.acquire({ deadlineAtMs, signal: wanted.signal, onTrouble });
    if (lease !== null || wanted.signal.aborted) return lease;
    return noCapacity();
  } catch (error) {
    if (error instanceof Fault) return wanted.signal.aborted ? null : error;
    throw error;
  } finally {
    state.pendingAcquire = null;
  }
}

/** Puts a worker to work; it is given back even when the work has gone meanwhile. */
function enlist(state: Dispatch, lease: WorkerLease): void {
  const service = serve(state, lease).finally(() => state.serving.delete(service));
  state.serving.add(service);
}

async function serve(state: Dispatch, lease: WorkerLease): Promise<void> {
  const { clock } = state.setup;
  const sinceMs = clock.nowMs();
  state.firstWorkerAtMs ??= sinceMs;
  state.crew += 1;
  let condition: Condition = "healthy";
  try {
    condition = await runChunks(state, lease, sinceMs);
  } catch (error) {
    stopWith(state, error);
    if (!(error instanceof Fault)) condition = "broken";
  } finally {
    state.crew -= 1;
    noteChange(state);
    if (lease.created === true) state.workersCreated += 1;
    state.heldMs += clock.nowMs() - sinceMs;
    letGo(state, lease, condition);
  }
}

type Condition = "healthy" | "broken";

interface ChunkUnderWay {
  readonly alone: boolean;
  readonly ended: Promise<Condition>;
  readonly state: () => "running" | Condition | "failed";
  /** Resolves when little is left of it, or nothing. */
  readonly nearlyEnded: Promise<void>;
}

async function runChunks(state: Dispatch, lease: WorkerLease, sinceMs: number): Promise<Condition> {
  let present = startChunk(state, lease, null);
  while (present !== null) {
    await present.nearlyEnded;
    const isAging = isNearItsEnd(state, lease);
    const yields = isAging || (await shouldYield(state, sinceMs));
    const ahead = !yields && mayRunAhead(state, present) ? startChunk(state, lease, present) : null;
    const condition = await waitForEnd(state, present, ahead);
    if (condition === "broken") return condition;
    if (yields) {
      if (!isAging) rest(state);
      break;
    }
    present = ahead ?? startChunk(state, lease, null);
  }
  return "healthy";
}

/** Gives the worker what is next for it; null when nothing is. */
function startChunk(state: Dispatch, lease: WorkerLease, before: ChunkUnderWay | null): ChunkUnderWay | null {
  if (state.stop.signal.aborted) return null;
  const assignment = state.setup.board.take(Math.max(state.crew, countWorthwhile(state)));
  if (assignment === null) return null;
  state.workerIds.add(lease.workerId);
  noteChange(state);
  let chunkState: ReturnType<ChunkUnderWay["state"]> = "running";
  let noteNearlyEnded = () => {};
  const nearlyEnded = new Promise<void>((resolve) => {
    noteNearlyEnded = resolve;
  });
  const setup = setUpChunk(state, {
    isBehindAnother: () => before !== null && before.state() !== "healthy",
    noteLeftMs: (leftMs) => leftMs <= AHEAD_MS && noteNearlyEnded(),
  });
  const ended = runChunk(lease, assignment, setup);
  const noteEnd = (how: Condition | "failed") => {
    chunkState = how;
    noteNearlyEnded();
  };
  ended.then(noteEnd, () => noteEnd("failed")); // who awaits it learns of the error
  return { alone: assignment.alone, ended, state: () => chunkState, nearlyEnded };
}

/** What must run alone does; what waits for others to end first isn't handed out yet. */
function mayRunAhead({ setup: { board } }: Dispatch, present: ChunkUnderWay): boolean {
  return present.state() === "running" && !present.alone && board.queuedCases() > board.queuedAlone();
}

/** How a chunk ended. When nothing more comes of its worker, the chunk that was sent ahead has ended, too. */
async function waitForEnd(
  state: Dispatch,
  present: ChunkUnderWay,
  ahead: ChunkUnderWay | null,
): Promise<Condition> {
  try {
    const condition = await present.ended;
    noteChange(state);
    if (condition === "broken") await ahead?.ended;
    return condition;
  } catch (error) {
    stopWith(state, error);
    await ahead?.ended.catch(() => {});
    throw error;
  }
}

/** Nobody waits for a worker to be back until all work is done. */
function letGo(state: Dispatch, lease: WorkerLease, condition: Condition): void {
  const released = lease.release(condition);
  released.catch(() => {}); // whoever awaits all of them learns of it
  state.leaving.push(released);
}

/** Whether the worker has too little of its life left for another chunk; a younger one does the rest. */
function isNearItsEnd(
  { setup }: Dispatch,
  { livesUntilMs = Number.POSITIVE_INFINITY }: WorkerLease,
): boolean {
  return livesUntilMs - setup.clock.nowMs() < LIFE_LEFT_MS;
}

/** One of several workers goes to somebody who has none; those that stay do the rest of the work. */
async function shouldYield(state: Dispatch, sinceMs: number): Promise<boolean> {
  if (state.setup.clock.nowMs() - sinceMs < YIELD_AFTER_MS) return false;
  if (state.crew < 2 || state.setup.board.queuedCases() === 0) return false;
  const isWanted = (await state.setup.workers.isWantedElsewhere?.()) ?? false;
  return isWanted && state.crew > 1;
}

function setUpChunk(state: Dispatch, place: Pick<ChunkSetup, "isBehindAnother" | "noteLeftMs">): ChunkSetup {
  const { board, clock, deadlineAtMs, judge, newId } = state.setup;
  const leftMs = () => deadlineAtMs - clock.nowMs();
  const noteTimeIsUp = () => {
    state.timeIsUp = true;
  };
  return {
    ...place,
    board,
    chunkId: newId(),
    deadlineMs: Math.max(1, leftMs()),
    leftMs,
    noteTimeIsUp,
    nowMs: () => clock.nowMs(),
    signal: state.stop.signal,
    judge,
  };
}
