/**
 * When a batch must end so that its answer is through before the platform ends its request.
 *
 *   ── grading ──▶ │ ── closingMs ── │ ── what is unsent goes through ── │ the platform's end
 *
 * A function's URL sends the first 6 MB of an answer as fast as it can, and 2 MB/s of what follows (AWS Lambda Developer
 * Guide, "Bandwidth limits for response streaming"): an answer of 76 MB needs 35 s. So the moment comes earlier with each
 * result that is not sent yet; what is not graded by then has a fault.
 */
import type { AnswerBytes } from "./batch.ts";
import type { Clock } from "./ports.ts";

/** What follows a batch's end takes time, too: programs are stopped, workers given back, records written. */
export const closingMs = 30_000;

const burstBytes = 6_000_000;
const bytesPerMs = 2_000;
/** About what an answer says of a sample that was not graded in time. */
const openSampleBytes = 300;

/** How long it takes until an answer is through of which so much is known. */
export function sendingMs({ total, unsent }: AnswerBytes): number {
  return Math.min(unsent, Math.max(0, total - burstBytes)) / bytesPerMs;
}

export interface ClosingTime {
  /** Aborted when it has come. */
  readonly signal: AbortSignal;
  /** To be called after each result, with how many samples have none yet. */
  look(openSamples: number): void;
  /** To be called in the end. */
  stop(): void;
}

/** Watches the time of a request that the platform ends at `endsAtMs`. */
export function watchClosingTime(
  clock: Clock,
  endsAtMs: number,
  samples: number,
  answerBytes: () => AnswerBytes,
): ClosingTime {
  const come = new AbortController();
  const over = new AbortController();
  let open = samples;
  const leftMs = () => {
    const { total, unsent } = answerBytes();
    const missing = open * openSampleBytes;
    const answer = { total: total + missing, unsent: unsent + missing };
    return endsAtMs - clock.nowMs() - closingMs - sendingMs(answer);
  };
  const look = () => {
    if (!over.signal.aborted && leftMs() <= 0) come.abort();
  };
  const watch = async () => {
    while (!come.signal.aborted && !over.signal.aborted) {
      await clock.sleep(Math.max(1, leftMs()), over.signal);
      look();
    }
  };
  if (Number.isFinite(endsAtMs)) void watch();
  return {
    signal: come.signal,
    look(openSamples) {
      open = openSamples;
      look();
    },
    stop: () => over.abort(),
  };
}
