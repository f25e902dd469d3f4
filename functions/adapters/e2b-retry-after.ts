/**
 * What E2B's API asked for when it refused: its client reads `Retry-After` only to wait by itself, and keeps it from its
 * errors. Node tells of the head of every answer to `fetch`; the last refusal of each origin is remembered here.
 */
import { subscribe } from "node:diagnostics_channel";
import { readRetryAfterMs } from "./retry-after.ts";

interface Refusal {
  readonly atMs: number;
  readonly retryAfterMs: number;
}

const refusals = new Map<string, Refusal>();
let listens = false;

/** Begins to listen, once in a process. */
export function listenForRetryAfter(): void {
  if (listens) return;
  listens = true;
  subscribe("undici:request:headers", (message) => noteAnswer(message as AnswerHead));
}

/** What the origin of `url` asked for since then (`performance.now`); null when nothing. */
export function retryAfterSince(url: string, sinceMs: number): number | null {
  const refusal = refusals.get(new URL(url).origin);
  return refusal !== undefined && refusal.atMs >= sinceMs ? refusal.retryAfterMs : null;
}

/** As far as it is read; nothing of it is taken for granted. */
interface AnswerHead {
  readonly request?: { readonly origin?: unknown };
  readonly response?: { readonly statusCode?: unknown; readonly headers?: readonly unknown[] };
}

function noteAnswer({ request, response }: AnswerHead): void {
  const origin = String(request?.origin);
  const isRefusal = response?.statusCode === 429 || response?.statusCode === 503;
  if (!isRefusal || !Array.isArray(response?.headers)) return;
  const names = response.headers.map((entry) => String(entry).toLowerCase());
  const at = names.findIndex((name, index) => index % 2 === 0 && name === "retry-after");
  const retryAfterMs = at < 0 ? null : readRetryAfterMs(names[at + 1], Date.now());
  if (retryAfterMs !== null) refusals.set(origin, { atMs: performance.now(), retryAfterMs });
}
