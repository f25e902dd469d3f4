/**
 * What the heads of E2B's answers say and its client keeps to itself. Node tells of the head of every answer to `fetch`;
 * the last ones that matter of each origin are remembered here.
 *
 * - What a refusal asked for: the client reads `Retry-After` only to wait by itself, and keeps it from its errors.
 * - Whether a question was answered by nothing at all: the client takes a body of length 0, as a gateway may send it, for
 *   a list without sandboxes.
 */
import { subscribe } from "node:diagnostics_channel";
import { readRetryAfterMs } from "./retry-after.ts";

interface Refusal {
  readonly atMs: number;
  readonly retryAfterMs: number;
}

const refusals = new Map<string, Refusal>();
const emptyAnswers = new Map<string, number>();
let listens = false;

/** Begins to listen, once in a process. */
export function listenForAnswerHeads(): void {
  if (listens) return;
  listens = true;
  subscribe("undici:request:headers", (message) => noteAnswer(message as AnswerHead));
}

/** What the origin of `url` asked for since then (`performance.now`); null when nothing. */
export function retryAfterSince(url: string, sinceMs: number): number | null {
  const refusal = refusals.get(new URL(url).origin);
  return refusal !== undefined && refusal.atMs >= sinceMs ? refusal.retryAfterMs : null;
}

/** Whether the origin of `url` has answered any question with nothing since then (`performance.now`). */
export function answeredNothingSince(url: string, sinceMs: number): boolean {
  return (emptyAnswers.get(new URL(url).origin) ?? Number.NEGATIVE_INFINITY) >= sinceMs;
}

/** As far as it is read; nothing of it is taken for granted. */
interface AnswerHead {
  readonly request?: { readonly origin?: unknown; readonly method?: unknown };
  readonly response?: { readonly statusCode?: unknown; readonly headers?: readonly unknown[] };
}

function noteAnswer({ request, response }: AnswerHead): void {
  if (!Array.isArray(response?.headers)) return;
  const { statusCode } = response;
  const origin = String(request?.origin);
  const headers = response.headers.map((entry) => String(entry).toLowerCase());
  if (statusCode === 429 || statusCode === 503) {
    const retryAfterMs = readRetryAfterMs(readHeader(headers, "retry-after"), Date.now());
    if (retryAfterMs !== null) refusals.set(origin, { atMs: performance.now(), retryAfterMs });
  }
  const isNothing =
    statusCode === 204 || (statusCode === 200 && readHeader(headers, "content-length") === "0");
  if (isNothing && request?.method === "GET") emptyAnswers.set(origin, performance.now());
}

/** Names and values take turns. */
function readHeader(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((entry, index) => index % 2 === 0 && entry === name);
  return at < 0 ? undefined : headers[at + 1];
}
