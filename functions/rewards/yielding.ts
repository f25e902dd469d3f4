/** Whether a worker goes to somebody who has none, although there is work for it. */
import type { Dispatch, Service } from "./dispatch-state.ts";
import { pause, rest } from "./recruiting.ts";

/** A worker is had for so long before anybody is asked who else would like it: less is not worth its way. */
const YIELD_AFTER_MS = 3_000;
/** Who gave his worker to another does not ask for one before that one can have taken it. */
const YIELD_PAUSE_MS = 1_000;
/** So near its deadline a batch keeps its only worker: its turn might not come again. */
const LAST_TURN_MS = 30_000;
/** A worker waits no longer for the answer: that comes in milliseconds, or the table is in trouble. */
const ANSWER_WITHIN_MS = 100;

/** To be asked near the end of each chunk. */
export function watchDemand(state: Dispatch, service: Service): () => Promise<boolean> {
  const { board, clock, deadlineAtMs, workers } = state.setup;
  let isAsking = false;
  const ask = async () => {
    isAsking = true;
    try {
      return (await workers.isWantedElsewhere?.()) ?? false;
    } finally {
      isAsking = false;
    }
  };
  return async () => {
    const nowMs = clock.nowMs();
    if (nowMs - service.sinceMs < YIELD_AFTER_MS || board.queuedCases() === 0) return false;
    if (state.crew.size === 1 && deadlineAtMs - nowMs < LAST_TURN_MS) return false;
    if (isAsking) return false;
    const over = new AbortController();
    const late = clock.sleep(ANSWER_WITHIN_MS, over.signal).then(() => false);
    try {
      return await Promise.race([ask(), late]);
    } finally {
      over.abort();
    }
  };
}

/** Workers that stay do the rest; who has none stands in line again, behind the one that was let pass. */
export function yieldWorker(state: Dispatch): void {
  rest(state);
  pause(state, YIELD_PAUSE_MS);
}
