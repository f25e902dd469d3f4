/**
 * Everything that this interface refuses, as RFC 9457 problems.
 *
 * One closed list of codes, one table of statuses. A `Problem` is an exception made to be shown; whatever else is
 * thrown is logged and becomes `internal`, which says nothing of its cause.
 */
import { Fault } from "../rewards/faults.ts";

const problemKinds = {
  invalid_json: { status: 400, title: "The body is not JSON in UTF-8" },
  unauthorized: { status: 401, title: "No valid key" },
  not_found: { status: 404, title: "No such resource" },
  run_not_found: { status: 404, title: "No such run" },
  method_not_allowed: { status: 405, title: "The resource has no such method" },
  in_progress: { status: 409, title: "The first request with this key is under way" },
  run_finished: { status: 409, title: "The run is finished" },
  cancelled: { status: 409, title: "The batch was cancelled" },
  too_large: { status: 413, title: "The body is too large" },
  unsupported_media_type: { status: 415, title: "The body is of a type that is not read here" },
  invalid_request: { status: 422, title: "The request asks for something impossible" },
  idempotency_mismatch: { status: 422, title: "The key was used for another body" },
  internal: { status: 500, title: "An unexpected error" },
  no_capacity: { status: 503, title: "No worker is free" },
  sandbox_unavailable: { status: 503, title: "The sandbox service is not available" },
  store_unavailable: { status: 503, title: "The table is not available" },
  isolation_failed: { status: 503, title: "Workers can't isolate programs" },
  stopping: { status: 503, title: "The service is being stopped or restarted" },
  misconfigured: { status: 503, title: "The service is not configured" },
} as const;

export type ProblemCode = keyof typeof problemKinds;

export const problemCodes = Object.keys(problemKinds) as ProblemCode[];

export function problemStatus(code: ProblemCode): number {
  return problemKinds[code].status;
}

/** When it makes sense to ask again. A configuration doesn't mend itself. */
const retryAfterS: Partial<Record<ProblemCode, number>> = {
  in_progress: 2,
  no_capacity: 5,
  sandbox_unavailable: 5,
  store_unavailable: 2,
  isolation_failed: 30,
  stopping: 2,
};

export interface ItemError {
  /** JSON pointer (RFC 6901) into the request's body. */
  readonly pointer: string;
  readonly detail: string;
}

export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly ItemError[];
  readonly headers: Readonly<Record<string, string>>;
  /** How long whoever we depend on wants to be left alone; null when that is not known. */
  readonly retryAfterMs: number | null;

  constructor(
    code: ProblemCode,
    detail: string,
    options: {
      readonly errors?: readonly ItemError[];
      readonly headers?: Readonly<Record<string, string>>;
      readonly retryAfterMs?: number | null;
      readonly cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: options.cause });
    this.name = "Problem";
    this.code = code;
    this.errors = options.errors ?? [];
    this.headers = options.headers ?? {};
    this.retryAfterMs = options.retryAfterMs ?? null;
  }
}

export interface ProblemBody {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
  readonly request_id: string;
  readonly errors: readonly ItemError[];
}

export function describeProblem(problem: Problem, requestId: string): ProblemBody {
  const { status, title } = problemKinds[problem.code];
  return {
    type: `urn:code-rewards:problem:${problem.code}`,
    title,
    status,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    errors: problem.errors,
  };
}

/** Seconds after which it makes sense to ask again: never less than what we were told ourselves. */
export function describeRetry({ code, retryAfterMs }: Problem): number | undefined {
  const usual = retryAfterS[code];
  return usual === undefined ? undefined : Math.max(usual, Math.ceil((retryAfterMs ?? 0) / 1_000));
}

export function respondWithProblem(problem: Problem, requestId: string): Response {
  const body = describeProblem(problem, requestId);
  const headers = new Headers(problem.headers);
  headers.set("content-type", "application/problem+json");
  const retry = describeRetry(problem);
  if (retry !== undefined) headers.set("retry-after", String(retry));
  return new Response(JSON.stringify(body), { status: body.status, headers });
}

/**
 * The problem behind whatever was thrown. What isn't made to be shown becomes `internal`; the caller logs it.
 */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof Fault && isProblemCode(error.code)) {
    return new Problem(error.code, error.message, { retryAfterMs: error.retryAfterMs, cause: error });
  }
  const detail =
    "The service failed unexpectedly; nothing is known of the samples. Send them again, and report the request id if it stays so.";
  return new Problem("internal", detail, { cause: error });
}

function isProblemCode(code: string): code is ProblemCode {
  return Object.hasOwn(problemKinds, code);
}
