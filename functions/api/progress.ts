/** Signs of life of a stream, from its first line to its last: also while nothing ends, or records are written. */
import type { Clock } from "../rewards/ports.ts";

/** Callers are promised a line every 10 s; this leaves room for a process that is busy. */
export const progressIntervalMs = 5_000;

/** Tells at once and again and again until it is stopped; nothing is told once `stop` was called. */
export function reportProgress(clock: Clock, tell: () => void): { stop(): Promise<void> } {
  const over = new AbortController();
  const loop = async () => {
    while (!over.signal.aborted) {
      tell();
      await clock.sleep(progressIntervalMs, over.signal);
    }
  };
  const running = loop();
  return {
    stop() {
      over.abort();
      return running;
    },
  };
}
