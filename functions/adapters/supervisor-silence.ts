/**
 * Silence of a worker: nothing came of it for longer than it takes a worker that is well and can be reached.
 *
 * A connection is made within seconds or not at all. While a request is sent, each piece that leaves is a sign of life.
 * After that the worker's beats come every 5 s; but the machine's own buffers take some megabytes at once, and a slow way
 * needs time to carry them.
 */
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";
import type { UploadWatch } from "./supervisor-http.ts";

/** Three beats: a worker that says nothing for so long is not heard any more. */
export const silenceLimitMs = 15_000;
/** Long enough for a first packet that was lost twice. */
export const connectLimitMs = 5_000;
/** The slowest way that is waited for: 1 Mbit/s. */
const leastBytesPerMs = 125;
/** Who wakes up so much too late was stopped in between. */
const oversleptMs = 2_000;

export interface SilenceWatch extends UploadWatch {
  /** Aborted when the caller gives up, or when there was silence for too long. */
  readonly signal: AbortSignal;
  heard(): void;
  /** The caller is busy with what it was given: that isn't the worker's silence. */
  pause(): void;
  end(): void;
  /** For how long nothing came, once that was too long; else null. Throws `cancelled` when the caller gave up. */
  silentForMs(error: unknown): number | null;
}

/** Begins to watch; the first thing to happen is a connection. */
export function watchSilence(clock: Clock, callerSignal: AbortSignal): SilenceWatch {
  const cut = new AbortController();
  const over = new AbortController();
  const giveUp = () => cut.abort();
  if (callerSignal.aborted) giveUp();
  callerSignal.addEventListener("abort", giveUp, { once: true });
  /** What is waited for, and since when; null while nothing is. */
  let due: { readonly sinceMs: number; readonly limitMs: number } | null = null;
  let silentMs: number | null = null;
  const expectWithin = (limitMs: number) => {
    due = { sinceMs: clock.nowMs(), limitMs };
  };
  expectWithin(connectLimitMs);
  let isUploading = true;
  const noteUpload = (limitMs: number) => {
    if (isUploading) expectWithin(limitMs); // an answer may be there before the request's last piece has left
  };
  const loop = async () => {
    while (!over.signal.aborted) {
      const leftMs = due === null ? silenceLimitMs : due.sinceMs + due.limitMs - clock.nowMs();
      if (due !== null && leftMs <= 0) {
        silentMs = due.limitMs;
        return cut.abort();
      }
      // No longer than the usual limit: what is waited for now may become something that is due earlier.
      const wakeAtMs = clock.nowMs() + Math.min(leftMs, silenceLimitMs);
      await clock.sleep(wakeAtMs - clock.nowMs(), over.signal);
      // What came while we were stopped is yet to be read.
      const wasStopped = clock.nowMs() > wakeAtMs + oversleptMs;
      if (wasStopped && due !== null) expectWithin(due.limitMs);
    }
  };
  void loop();
  return {
    signal: cut.signal,
    connected: () => noteUpload(silenceLimitMs),
    sentPiece: () => noteUpload(silenceLimitMs),
    sentAll: (bytes) => noteUpload(silenceLimitMs + Math.round(bytes / leastBytesPerMs)),
    heard: () => {
      isUploading = false;
      expectWithin(silenceLimitMs);
    },
    pause: () => {
      isUploading = false;
      due = null;
    },
    end: () => {
      over.abort();
      callerSignal.removeEventListener("abort", giveUp);
    },
    silentForMs(error) {
      if (callerSignal.aborted)
        throw new Fault("cancelled", "The caller stopped the chunk.", { cause: error });
      return silentMs;
    },
  };
}
