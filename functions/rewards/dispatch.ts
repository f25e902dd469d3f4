/**
 * Workers and the work that waits for them.
 *
 * Theory of operation
 * - Workers are asked for while cases wait and fewer are here than the work is worth (`recruiting`).
 * - Each takes one chunk after the other, until nothing waits for it (`serving`).
 * - Everything ends through one signal: all programs settled, the deadline, the caller's cancellation, or a bug.
 *   Whichever it was, every lease is released: before `dispatch` throws, or while its report is used.
 * - A batch of which no program was started when its time was up is refused as a whole, for the reason that kept its
 *   workers away; one that was begun has an answer, in which what has not ended has no reward.
 */
import { deadlineExceeded } from "./chunk-run.ts";
import { createDispatch, type Dispatch, type DispatchSetup, noteChange, stopWith } from "./dispatch-state.ts";
import { type Fault, whyStopped } from "./faults.ts";
import { joinSignals } from "./joined-signal.ts";
import { recruit } from "./recruiting.ts";
import { enlist } from "./serving.ts";
import { noCapacity, nothingStarted } from "./unstarted.ts";

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
    await recruit(state, (lease) => enlist(state, lease));
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

async function watchDeadline(state: Dispatch): Promise<void> {
  const { clock, deadlineAtMs, timeIsUp } = state.setup;
  const end = joinSignals(state.stop.signal, timeIsUp);
  await clock.sleep(Math.max(0, deadlineAtMs - clock.nowMs()), end.signal);
  end.leave();
  if (state.stop.signal.aborted) return;
  state.timeIsUp = true;
  if (state.setup.board.programsRun() === 0) stopWith(state, explainNothing(state));
  else
    state.setup.board.failAll(state.crew.size === 0 ? (state.trouble ?? noCapacity()) : deadlineExceeded());
  noteChange(state);
}

function explainNothing({ firstWorkerAtMs, trouble, setup }: Dispatch): Fault {
  if (firstWorkerAtMs === null) return trouble ?? noCapacity();
  return nothingStarted(setup.clock.nowMs() - firstWorkerAtMs);
}
