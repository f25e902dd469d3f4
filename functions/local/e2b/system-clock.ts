import { setTimeout as sleepFor } from "node:timers/promises";
import type { Clock } from "../../rewards/ports.ts";

/** The machine's clock. Its sleeps don't keep the process alive. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  async sleep(ms, signal) {
    const options = signal === undefined ? { ref: false } : { ref: false, signal };
    try {
      await sleepFor(ms, undefined, options);
    } catch (error) {
      if (!(error instanceof Error && error.name === "AbortError")) throw error;
    }
  },
};
