/** How long a waiting acquirer sleeps, and how long a failing one backs off. */

/** The age at which a waiter polls as often as it ever will, if not before. */
const oldestMs = 60_000;

/**
 * Jittered time until the next look: 1.5 times the mean for a newcomer, falling to 0.3 times for an old waiter.
 *
 * Older waiters look up to five times as often, so that who has waited longest is likely, not sure, to be next. Old is
 * who has waited nearly twice as long as is usual. The jitter keeps waiters that came together from looking together.
 */
export function pollDelayMs(pollMs: number, waitedMs: number, typicalMs: number, random: number): number {
  const oldMs = Math.min(oldestMs, Math.max(5 * pollMs, 1.8 * typicalMs));
  const age = Math.min(1, Math.max(0, waitedMs) / oldMs);
  return Math.round(pollMs * (1.5 - 1.2 * age) * (0.5 + random));
}

/** Full-jitter exponential backoff after `failures` failures in a row: 0 to 1 s, 2 s, 4 s, … 30 s. */
export function backoffMs(failures: number, random: number): number {
  return Math.round(random * Math.min(30_000, 1_000 * 2 ** Math.min(failures - 1, 5)));
}

/** Up to `count` members in random order. Handlers that choose alike would collide on the same row. */
export function drawSome<T>(from: readonly T[], count: number, random: () => number): T[] {
  const left = [...from];
  const drawn: T[] = [];
  while (drawn.length < count && left.length > 0) {
    drawn.push(...left.splice(Math.floor(random() * left.length), 1));
  }
  return drawn;
}
