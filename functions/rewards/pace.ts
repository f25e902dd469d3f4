/** How fast a chunk's cases come to their end. */

/** A chunk's pace is known when a quarter of its cases have ended. */
const ENDED_TO_OPEN_CASES = 1 / 3;
/**
 * And it is believed of so many cases at most: the last of a chunk are often its slowest, and whatever is sent behind
 * them waits for them while other workers have nothing to do.
 */
const BELIEVED_OPEN_CASES = 8;

export interface Pace {
  hasStarted(): boolean;
  /** A case has started. */
  noteStart(): void;
  /** So many cases have ended, or need not run any more. */
  noteEnds(cases: number): void;
  /** How long the rest takes at this pace; null while that can't be said. */
  leftMs(): number | null;
  /** How long it takes for each case, as far as is known; 0 until one has started. */
  msPerCase(): number;
  /** How long nothing has started; 0 as soon as something has. */
  unstartedMs(): number;
}

export function createPace(cases: number, nowMs: () => number): Pace {
  let firstStartAtMs: number | null = null;
  let lastChangeAtMs = nowMs();
  let openCases = cases;
  let endedCases = 0;
  return {
    hasStarted: () => firstStartAtMs !== null,
    noteStart() {
      lastChangeAtMs = nowMs();
      firstStartAtMs ??= lastChangeAtMs;
    },
    noteEnds(count) {
      openCases -= count;
      endedCases += count;
      lastChangeAtMs = nowMs();
    },
    leftMs() {
      if (openCases > BELIEVED_OPEN_CASES || endedCases < openCases * ENDED_TO_OPEN_CASES) return null;
      const tookMs = nowMs() - (firstStartAtMs ?? nowMs());
      return (tookMs / endedCases) * openCases;
    },
    msPerCase() {
      if (firstStartAtMs === null) return 0;
      const sinceChangeMs = nowMs() - lastChangeAtMs;
      return Math.max(sinceChangeMs, endedCases === 0 ? 0 : (lastChangeAtMs - firstStartAtMs) / endedCases);
    },
    unstartedMs: () => (firstStartAtMs === null ? nowMs() - lastChangeAtMs : 0),
  };
}
