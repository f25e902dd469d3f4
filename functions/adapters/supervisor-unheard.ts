/** What kept a request to a supervisor from its answer, in words and in kinds, and what is surely a fault. */
import { Fault } from "../rewards/faults.ts";
import { readRetryAfterMs } from "./retry-after.ts";
import { brokenFrame } from "./supervisor-frames.ts";
import { type Answer, NoConnection, ResetBeforeAnswer } from "./supervisor-http.ts";

/** A request of which no supervisor's answer was had. */
export interface Unheard {
  /**
   * - `no_connection`: nothing was sent.
   * - `answered`: somebody in between did.
   * - `broken`: the connection ended before anything was told.
   * - `silent`: nothing came for too long; the request may have arrived.
   * - `cut`: some of the answer came, and then its end or nothing more. What it had to tell is gone.
   * - `seen`: the supervisor is there, but has had a chunk of this id.
   */
  readonly kind: "no_connection" | "answered" | "broken" | "silent" | "cut" | "seen";
  readonly why: string;
  /** Whether somebody said that there is too much to do: 429 or 503. */
  readonly isRefusal: boolean;
  /** When to ask again, as far as was said. */
  readonly retryAfterMs: number | null;
}

/** Called after each such try; null sends the request again, after the pause that it took. */
export type DecideReach = (unheard: Unheard, tries: number) => Promise<Fault | null>;

export function unheard(kind: Unheard["kind"], why: string): Unheard {
  return { kind, why, isRefusal: false, retryAfterMs: null };
}

/** The fault behind an error of a request or its answer; what is no such error stays what it is. */
export function explainError(error: unknown): unknown {
  if (error instanceof Fault) return error;
  const { code } = error as { code?: unknown };
  if (typeof code === "string" && code.startsWith("HPE_"))
    return brokenFrame(`its answer isn't HTTP (${code})`);
  return isNetworkError(error) ? lost(describeNetworkError(error), error) : error;
}

export function isNetworkError(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return error instanceof ResetBeforeAnswer || (typeof code === "string" && !code.startsWith("HPE_"));
}

export function describeNetworkError(error: unknown): string {
  if (error instanceof NoConnection) return `no connection could be made (${error.code})`;
  return `its connection failed (${String((error as { code?: unknown }).code ?? "reset")})`;
}

export function lost(why: string, cause?: unknown): Fault {
  return new Fault("worker_lost", `The worker was lost: ${why}.`, { cause });
}

export function orLost(refusal: Fault | Unheard): Fault {
  return refusal instanceof Fault ? refusal : lost(refusal.why);
}

/** Statuses that proxies in between answer with; a supervisor's own carry a code in words. */
const proxyStatuses: readonly number[] = [404, 408, 410, 425, 429];

/** What a status that isn't a success says about the worker. */
export function describeRefusal(answer: Answer, said: Readonly<Record<string, unknown>>): Fault | Unheard {
  const { status } = answer;
  const code = typeof said.code === "string" ? said.code : null;
  if (code === "chunk_seen") return unheard("seen", "it has seen this chunk already and its answer is gone");
  if (code === "not_ready") return lost("it is not ready any more");
  if (code === "restarted") return lost("its supervisor was started again and has forgotten who holds it");
  if (code === null && (status >= 500 || proxyStatuses.includes(status))) {
    const why = `its address answers with status ${status}`;
    const retryAfterMs = readRetryAfterMs(answer.body.headers["retry-after"], Date.now());
    return { kind: "answered", why, isRefusal: status === 429 || status === 503, retryAfterMs };
  }
  return brokenFrame(`it refused a request with status ${status}${code === null ? "" : ` (${code})`}`);
}
