/**
 * A worker that is here: it takes a chunk, runs it and takes the next one, just before it has ended the first, so that
 * it need not wait for a round trip in between. It is given back when nothing waits, when it broke, when it is too old
 * for another chunk, or when somebody else should have it.
 */
import { type ChunkSetup, type RunningChunk, runChunk } from "./chunk-run.ts";
import { type Dispatch, noteChange, type Service, stopWith } from "./dispatch-state.ts";
import { Fault } from "./faults.ts";
import { lossesOf } from "./lost-services.ts";
import type { WorkerLease } from "./ports.ts";
import { countWorthwhile } from "./recruiting.ts";
import { findSignOfLife } from "./sign-of-life.ts";
import { takeOver, watchPace } from "./slow-work.ts";
import type { ChunkCondition } from "./worker-condition.ts";
import { watchDemand, yieldWorker } from "./yielding.ts";

/** A worker is given its next chunk when the present one will last no longer: a few round trips. */
const AHEAD_MS = 250;
/** A worker with less of its life left is given back: a case may take three minutes, at its limit's hard cap. */
const LIFE_LEFT_MS = 180_000;
/** Puts a worker to work; it is given back even when the work has gone meanwhile. */
export function enlist(state: Dispatch, lease: WorkerLease): void {
  const service = serve(state, lease).finally(() => state.serving.delete(service));
  state.serving.add(service);
}

async function serve(state: Dispatch, lease: WorkerLease): Promise<void> {
  const { clock } = state.setup;
  const sinceMs = clock.nowMs();
  const isProved = lease.created === true;
  const service: Service = { lease, sinceMs, cameAt: state.losses.nextOrder(), isProved, chunks: [] };
  const over = new AbortController();
  state.firstWorkerAtMs ??= sinceMs;
  state.crew.add(service);
  if (state.setup.maxWorkers > 1) void watchPace(state, service, over.signal);
  let condition: ChunkCondition = "healthy";
  try {
    condition = await work(state, service);
  } catch (error) {
    stopWith(state, error);
    if (!(error instanceof Fault)) condition = "broken";
  } finally {
    over.abort();
    state.crew.delete(service);
    noteChange(state);
    if (lease.created === true) state.workersCreated += 1;
    state.heldMs += clock.nowMs() - sinceMs;
    letGo(state, lease, condition === "broken" ? "broken" : "healthy");
  }
}

async function work(state: Dispatch, service: Service): Promise<ChunkCondition> {
  const found = state.isWary && !service.isProved ? await findSignOfLife(state, service) : "healthy";
  return found === "healthy" ? runChunks(state, service) : found;
}

interface ChunkUnderWay extends RunningChunk {
  /** Whether it must not have another one beside it. */
  readonly alone: boolean;
  readonly state: () => "running" | ChunkCondition | "failed";
  /** Resolves when little is left of it, or nothing. */
  readonly nearlyEnded: Promise<void>;
}

async function runChunks(state: Dispatch, service: Service): Promise<ChunkCondition> {
  const isWantedElsewhere = watchDemand(state, service);
  let present = startChunk(state, service, null);
  while (present !== null) {
    await present.nearlyEnded;
    const isAging = isNearItsEnd(state, service);
    const yields = !isAging && (await isWantedElsewhere());
    const ahead =
      !isAging && !yields && mayRunAhead(state, present) ? startChunk(state, service, present) : null;
    const condition = await waitForEnd(state, present, ahead);
    if (condition !== "healthy") return condition;
    if (yields) yieldWorker(state);
    if (yields || isAging) break;
    present = ahead ?? startChunk(state, service, null);
  }
  return "healthy";
}

/** Gives the worker what is next for it; null when nothing is. */
function startChunk(state: Dispatch, service: Service, before: ChunkUnderWay | null): ChunkUnderWay | null {
  if (state.stop.signal.aborted) return null;
  const assignment =
    state.setup.board.take(Math.max(state.crew.size, countWorthwhile(state))) ??
    (before === null ? takeOver(state, service) : null);
  if (assignment === null) return null;
  const { lease, chunks } = service;
  state.workerIds.add(lease.workerId);
  let chunkState: ReturnType<ChunkUnderWay["state"]> = "running";
  let noteNearlyEnded = () => {};
  const nearlyEnded = new Promise<void>((resolve) => {
    noteNearlyEnded = resolve;
  });
  const setup = setUpChunk(state, service, {
    isBehindAnother: () => before !== null && before.state() !== "healthy",
    noteLeftMs: (leftMs) => leftMs <= AHEAD_MS && noteNearlyEnded(),
  });
  const running = runChunk(lease, assignment, setup);
  chunks.push(running);
  const noteEnd = (how: ChunkCondition | "failed") => {
    chunkState = how;
    chunks.splice(chunks.indexOf(running), 1);
    noteNearlyEnded();
  };
  running.ended.then(noteEnd, () => noteEnd("failed")); // who awaits it learns of the error
  noteChange(state);
  const alone = assignment.alone || assignment.unstartedLosses > 0;
  return { ...running, alone, state: () => chunkState, nearlyEnded };
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
): Promise<ChunkCondition> {
  try {
    const condition = await present.ended;
    noteChange(state);
    if (condition === "healthy" || ahead === null) return condition;
    return (await ahead.ended) === "broken" ? "broken" : condition;
  } catch (error) {
    stopWith(state, error);
    await ahead?.ended.catch(() => {});
    throw error;
  }
}

/** Nobody waits for a worker to be back until all work is done. */
function letGo(state: Dispatch, lease: WorkerLease, condition: "healthy" | "broken"): void {
  const released = lease.release(condition);
  released.catch(() => {}); // whoever awaits all of them learns of it
  state.leaving.push(released);
}

/** Whether the worker has too little of its life left for another chunk; a younger one does the rest. */
function isNearItsEnd({ setup }: Dispatch, { lease }: Service): boolean {
  const { livesUntilMs = Number.POSITIVE_INFINITY } = lease;
  return livesUntilMs - setup.clock.nowMs() < LIFE_LEFT_MS;
}

function setUpChunk(
  state: Dispatch,
  service: Service,
  place: Pick<ChunkSetup, "isBehindAnother" | "noteLeftMs">,
): ChunkSetup {
  const { board, clock, deadlineAtMs, judge, newId } = state.setup;
  const leftMs = () => deadlineAtMs - clock.nowMs();
  const losses = lossesOf(state, service);
  return {
    ...place,
    board,
    chunkId: newId(),
    deadlineMs: Math.max(1, leftMs()),
    leftMs,
    noteTimeIsUp: () => {
      state.timeIsUp = true;
    },
    noteStarted: losses.noteStarted,
    losses,
    nowMs: () => clock.nowMs(),
    signal: state.stop.signal,
    judge,
  };
}
