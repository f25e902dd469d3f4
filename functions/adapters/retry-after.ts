/** `Retry-After`, as services send it: seconds, or a date. */

/** One that asks for more is asked again after this: a header of a proxy must not silence a container for a day. */
export const longestRetryAfterMs = 120_000;

/** How long to wait, in milliseconds from now; null when the header says nothing that can be read. */
export function readRetryAfterMs(header: string | null | undefined, nowMs: number): number | null {
  const text = header?.trim() ?? "";
  const waitMs = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1_000 : dateOf(text) - nowMs;
  return Number.isFinite(waitMs) ? Math.round(Math.min(longestRetryAfterMs, Math.max(0, waitMs))) : null;
}

function dateOf(text: string): number {
  return /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
}
