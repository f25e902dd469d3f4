import type { Clock } from "../rewards/ports.ts";

/**
 * Real time. Sleeping keeps no process alive: who awaits one holds the event loop (`holdEventLoop`). Node's own promise
 * of a timer would reject when it is aborted, and the error with its stack costs more than all the rest: most sleeps
 * here are cut short.
 */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep(ms, signal) {
    return new Promise((resolve) => {
      if (signal?.aborted) {
        resolve();
        return;
      }
      const wake = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, ms).unref();
      signal?.addEventListener("abort", wake, { once: true });
    });
  },
};
