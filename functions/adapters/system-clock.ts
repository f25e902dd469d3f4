import { setTimeout as wait } from "node:timers/promises";
import type { Clock } from "../rewards/ports.ts";

/** Real time. Sleeping keeps no process alive that has nothing else to do. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  async sleep(ms, signal) {
    try {
      await wait(ms, undefined, signal ? { signal, ref: false } : { ref: false });
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  },
};
