/**
 * What is known after a call to E2B's control plane that failed.
 *
 * The client has one class of error for several causes, and several for one; here each kind is a piece of knowledge.
 * What isn't surely something else is `unanswered`: the call may have had its effect, or may still come to have it.
 *
 *     E2B said                                                             kind
 *     401                                                                  unauthorized
 *     another 4xx, or the client refused to ask                            rejected
 *     409                                                                  conflict
 *     404 with E2B's own body                                              not_found
 *     429                                                                  throttled
 *     503                                                                  busy
 *     500                                                                  broken
 *     nothing, for no connection could be made                             unsent
 *     another 5xx, 3xx, 408, 425, timeout, cut connection, unreadable answer unanswered
 *
 * Errors of the client never get out, not even as a cause: they carry texts that others wrote.
 */
import { Fault } from "../rewards/faults.ts";
import { redact, wordOf } from "./e2b-redaction.ts";

export type E2bFailure =
  /** The client itself is not there; nothing was asked. */
  | { readonly kind: "no_client" }
  | { readonly kind: "unauthorized" }
  | { readonly kind: "rejected"; readonly status: number | null; readonly said: string }
  | { readonly kind: "conflict" }
  | { readonly kind: "not_found" }
  | { readonly kind: "throttled"; readonly retryAfterMs: number | null }
  | { readonly kind: "busy"; readonly retryAfterMs: number | null }
  | { readonly kind: "broken" }
  | { readonly kind: "unsent"; readonly word: string }
  | { readonly kind: "unanswered"; readonly word: string };

const unsentCodes: readonly string[] = [
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
];
const refusedUnasked: readonly string[] = ["InvalidArgumentError", "TemplateError"];
const undecidedStatuses: readonly number[] = [408, 425];

/** What an error of the client stands for; `secrets` never get into what is kept of it. */
export function readFailure(error: unknown, secrets: readonly string[]): E2bFailure {
  const { name, message, statusCode, cause } = describeError(error);
  if (name === "AuthenticationError") return { kind: "unauthorized" };
  if (name === "RateLimitError") return { kind: "throttled", retryAfterMs: null };
  if (name === "ServiceBusyError") return { kind: "busy", retryAfterMs: null };
  if (name === "SandboxNotFoundError") return { kind: "not_found" };
  if (refusedUnasked.includes(name))
    return { kind: "rejected", status: null, said: redact(message, secrets) };
  if (statusCode !== null) return readStatus(statusCode, message, secrets);
  const code = describeError(cause).code;
  if (code !== null && unsentCodes.includes(code)) return { kind: "unsent", word: code };
  return { kind: "unanswered", word: code ?? wordOf(name) };
}

function readStatus(status: number, message: string, secrets: readonly string[]): E2bFailure {
  if (status === 409) return { kind: "conflict" };
  if (status === 500) return { kind: "broken" };
  if (status >= 400 && status < 500 && !undecidedStatuses.includes(status)) {
    return { kind: "rejected", status, said: redact(message.replace(/^\d+: /, ""), secrets) };
  }
  return { kind: "unanswered", word: `status ${status}` };
}

interface ErrorFacts {
  readonly name: string;
  readonly message: string;
  readonly statusCode: number | null;
  readonly code: string | null;
  readonly cause: unknown;
}

function describeError(error: unknown): ErrorFacts {
  const facts = (typeof error === "object" && error !== null ? error : {}) as Record<string, unknown>;
  return {
    name: typeof facts.name === "string" ? facts.name : "",
    message: typeof facts.message === "string" ? facts.message : "",
    statusCode: typeof facts.statusCode === "number" ? facts.statusCode : null,
    code: typeof facts.code === "string" ? wordOf(facts.code) : null,
    cause: facts.cause,
  };
}

/** The fault behind a failure; `what` completes "E2B refused to …". */
export function failureFault(failure: E2bFailure, what: string): Fault {
  switch (failure.kind) {
    case "no_client":
      return new Fault("misconfigured", "The package e2b can't be loaded: install it, or bundle it.");
    case "unauthorized":
      return new Fault(
        "misconfigured",
        `E2B refused the API key, so it can't ${what}. Set a key that is valid for this E2B.`,
      );
    case "rejected":
      return new Fault("misconfigured", `E2B refused to ${what}${rejection(failure)}`);
    case "conflict":
      return new Fault(
        "sandbox_unavailable",
        `E2B could not ${what}: the sandbox was changing its state (409)`,
      );
    case "not_found":
      return new Fault("sandbox_unavailable", `E2B could not ${what}: there is no such sandbox`);
    case "throttled":
      return unavailable(`E2B throttled the request to ${what} (429)`, failure);
    case "busy":
      return unavailable(`E2B was too busy to ${what} (503)`, failure);
    case "broken":
      return new Fault("sandbox_unavailable", `E2B failed to ${what} (500)`);
    case "unsent":
      return new Fault("sandbox_unavailable", `E2B could not be reached to ${what} (${failure.word})`);
    case "unanswered":
      return new Fault("sandbox_unavailable", `E2B did not answer the request to ${what} (${failure.word})`);
    default:
      return failure satisfies never;
  }
}

function unavailable(detail: string, { retryAfterMs }: { readonly retryAfterMs: number | null }): Fault {
  return new Fault("sandbox_unavailable", detail, { retryAfterMs });
}

function rejection({ status, said }: { readonly status: number | null; readonly said: string }): string {
  const where = status === null ? "" : ` (status ${status})`;
  return said === "" ? where : `${where}: ${said}`;
}
