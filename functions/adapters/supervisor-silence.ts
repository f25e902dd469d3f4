/** Silence of a worker that works: its beats come every 5 s, so it is lost. */
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";

/** A worker that says nothing for so long while it works is lost. */
export const silenceLimitMs = 15_000;
/** Who wakes up so much too late was stopped in between. */
const oversleptMs = 2_000;

export interface SilenceWatch {
  /** Aborted when the caller gives up, or the worker has been silent for too long. */
  readonly signal: AbortSignal;
  heard(): void;
  /** The caller is busy with what it was given: that isn't the worker's silence. */
  pause(): void;
  end(): void;
  /** The fault behind an error, which `otherwise` names when it was neither the caller nor silence. */
  explain(error: unknown, otherwise: (error: unknown) => unknown): unknown;
}

export function watchSilence(clock: Clock, callerSignal: AbortSignal): SilenceWatch {
  const cut = new AbortController();
  const over = new AbortController();
  const giveUp = () => cut.abort();
  if (callerSignal.aborted) giveUp();
  callerSignal.addEventListener("abort", giveUp, { once: true });
  let heardAtMs: number | null = clock.nowMs();
  let silent = false;
  const loop = async () => {
    while (!over.signal.aborted) {
      const leftMs = heardAtMs === null ? silenceLimitMs : heardAtMs + silenceLimitMs - clock.nowMs();
      silent = leftMs <= 0;
      if (silent) return cut.abort();
      const dueAtMs = clock.nowMs() + leftMs;
      await clock.sleep(leftMs, over.signal);
      // What the worker said while we were stopped is yet to be read.
      const wasStopped = clock.nowMs() > dueAtMs + oversleptMs;
      if (wasStopped && heardAtMs !== null) heardAtMs = clock.nowMs();
    }
  };
  void loop();
  return {
    signal: cut.signal,
    heard: () => {
      heardAtMs = clock.nowMs();
    },
    pause: () => {
      heardAtMs = null;
    },
    end: () => {
      over.abort();
      callerSignal.removeEventListener("abort", giveUp);
    },
    explain: (error, otherwise) => {
      if (callerSignal.aborted)
        return new Fault("cancelled", "The caller stopped the chunk.", { cause: error });
      if (!silent) return otherwise(error);
      const detail = `The worker was lost: it said nothing for ${silenceLimitMs / 1000} s.`;
      return new Fault("worker_lost", detail, { cause: error });
    },
  };
}
