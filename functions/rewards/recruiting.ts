/**
 * Asking for workers.
 *
 * Theory of operation
 * - As many are asked for side by side as the work is worth: each takes a few round trips. But who has asked for a while
 *   in vain asks for one at a time, since many would only look at the same pool again and again. Every worker that is
 *   had raises how many are asked for next.
 * - Requests that the work is no longer worth are dropped, and all of them when nothing waits.
 * - One that fails ends nobody's hope but its own: only when no worker is here, and none is on its way, is its fault that
 *   of the work. When others are here, they go on, and another one is asked for after a rest.
 */
import { type Dispatch, noteChange, type Search, stopWith } from "./dispatch-state.ts";
import { endsBatch, Fault } from "./faults.ts";
import type { WorkerLease } from "./ports.ts";
import { countSlow } from "./slow-work.ts";
import { noCapacity } from "./unstarted.ts";

/** A worker is worth asking for when it would have so many cases to run. */
const CASES_PER_WORKER = 16;
/** Between a request for a worker that failed and the next one, while other workers are here. */
const REST_MS = 5_000;
/** So many are asked for at once before the first one is had. */
const FIRST_SEARCHES = 4;
/** Who has asked for several workers for so long without having one asks for one. */
const MANY_FOR_MS = 1_500;

/** Asks for workers, and hands each to `enlist`, until the dispatch ends and no request is under way. */
export async function recruit(state: Dispatch, enlist: (lease: WorkerLease) => void): Promise<void> {
  state.manyUntilMs = state.setup.clock.nowMs() + MANY_FOR_MS;
  while (!state.stop.signal.aborted) {
    dropNeedless(state);
    while (wantsWorker(state)) startSearch(state, enlist);
    await new Promise<void>((resolve) => {
      state.wakeRecruiter = resolve;
    });
  }
  while (state.searching.size > 0) await Promise.all(state.searching);
}

/** How many workers the open work is worth. */
export function countWorthwhile(state: Dispatch): number {
  const { board, maxWorkers } = state.setup;
  const slow = countSlow(state);
  const byCases = Math.ceil(board.openCases() / CASES_PER_WORKER) + board.queuedAlone();
  const worth = Math.min(byCases, state.crew.size + board.queuedCases());
  return Math.min(maxWorkers, slow > 0 ? Math.max(worth, slow + 1) : worth);
}

/** After a failed request: no other one for a while, as long as other workers are here. */
export function rest(state: Dispatch): void {
  void holdBack(state, "rests", REST_MS);
}

/** No worker is asked for until then, whoever is here. */
export function pause(state: Dispatch, forMs: number): void {
  void holdBack(state, "pauses", forMs);
}

/**
 * Ends with its sleep, whatever the clock says then: a timer may ring a moment early, and the clock may be set back. Who
 * compared times would see that it is not over yet, and nothing would wake him again.
 */
async function holdBack(state: Dispatch, what: "pauses" | "rests", forMs: number): Promise<void> {
  state[what] += 1;
  await state.setup.clock.sleep(forMs, state.stop.signal);
  state[what] -= 1;
  state.wakeRecruiter();
}

function pendingSearches({ searches }: Dispatch): Search[] {
  return [...searches].filter(({ wanted }) => !wanted.signal.aborted);
}

function wantsWorker(state: Dispatch): boolean {
  const { crew, setup } = state;
  const pending = pendingSearches(state).length;
  if (state.pauses > 0 || setup.board.openPrograms() === 0) return false;
  if (crew.size + pending > 0 && state.rests > 0) return false;
  const allowed = setup.clock.nowMs() < state.manyUntilMs ? FIRST_SEARCHES + state.workersHad : 1;
  return pending < allowed && crew.size + pending < countWorthwhile(state);
}

function dropNeedless(state: Dispatch): void {
  const least = state.setup.board.queuedCases() > 0 ? 1 : 0;
  const wanted = Math.max(least, countWorthwhile(state) - state.crew.size);
  for (const search of pendingSearches(state).slice(wanted)) search.wanted.abort();
}

function startSearch(state: Dispatch, enlist: (lease: WorkerLease) => void): void {
  const search: Search = { wanted: new AbortController(), trouble: null };
  const over = new AbortController();
  if (state.searches.size === 0) state.trouble = null;
  else void dropWhenOld(state, search, over.signal);
  state.searches.add(search);
  const searched = acquire(state, search)
    .then((had) => {
      state.searches.delete(search); // and in the same moment it counts as one that is here
      takeResult(state, had, enlist);
    })
    .catch((error: unknown) => stopWith(state, error))
    .finally(() => {
      over.abort();
      state.searches.delete(search);
      state.searching.delete(searched);
      noteChange(state);
    });
  state.searching.add(searched);
}

/** One of several requests is not kept up for long. */
async function dropWhenOld(state: Dispatch, { wanted }: Search, over: AbortSignal): Promise<void> {
  await state.setup.clock.sleep(MANY_FOR_MS, over);
  if (pendingSearches(state).length > 1) wanted.abort();
}

function takeResult(
  state: Dispatch,
  had: WorkerLease | Fault | null,
  enlist: (lease: WorkerLease) => void,
): void {
  if (had instanceof Fault) {
    takeFault(state, had);
  } else if (had !== null) {
    state.workersHad += 1;
    state.manyUntilMs = state.setup.clock.nowMs() + MANY_FOR_MS;
    enlist(had);
  }
}

function takeFault(state: Dispatch, fault: Fault): void {
  const isHopeless = fault.code === "misconfigured" && state.setup.board.programsRun() === 0;
  if (isHopeless || endsBatch(fault)) stopWith(state, fault);
  else if (state.crew.size === 0 && pendingSearches(state).length === 0) giveUp(state, fault);
  else rest(state);
}

/** No worker can be had: the fault of the batch when nothing was started, else of what is still open. */
function giveUp(state: Dispatch, fault: Fault): void {
  if (state.setup.board.programsRun() === 0) stopWith(state, fault);
  else state.setup.board.failAll(fault);
}

/** A lease; the fault that says why there is none; null when it is no longer wanted. */
async function acquire(state: Dispatch, search: Search): Promise<WorkerLease | Fault | null> {
  const { wanted } = search;
  const onTrouble = (trouble: Fault | null) => {
    if (!state.searches.has(search)) return;
    search.trouble = trouble;
    state.trouble = [...state.searches].find((other) => other.trouble !== null)?.trouble ?? null;
  };
  try {
    const { deadlineAtMs, workers } = state.setup;
    const lease = await workers.acquire({ deadlineAtMs, signal: wanted.signal, onTrouble });
    if (lease !== null || wanted.signal.aborted) return lease;
    return noCapacity();
  } catch (error) {
    if (error instanceof Fault) return wanted.signal.aborted ? null : error;
    throw error;
  }
}
