/**
 * Answers line by line.
 *
 * The status is sent before anything has run, so whatever goes wrong later is the last line. A stream that ends
 * without a summary or an error was cut.
 */
import type { Context } from "hono";
import { stream } from "hono/streaming";
import type { CallerVariables } from "./authentication.ts";
import { createLineWriter, type LineWriter } from "./line-writer.ts";
import type { LogEvent } from "./log.ts";
import { describeProblem, describeRetry, type Problem, toProblem } from "./problem.ts";
import type { RequestVariables } from "./request-id.ts";

/** The context of a request that is answered with rewards. */
export type RewardsContext = Context<{ Variables: RequestVariables & CallerVariables }>;

export const lineType = "application/x-ndjson";

/** Aborted when the caller goes away, where that can be seen before anything is streamed. */
export function watchCaller(c: RewardsContext): AbortController {
  const gone = new AbortController();
  const { signal } = c.req.raw;
  if (signal.aborted) gone.abort();
  signal.addEventListener("abort", () => gone.abort(), { once: true });
  return gone;
}

/**
 * Streams what `tell` writes. `gone` is aborted when the caller goes away; what `tell` throws becomes the last line. Who
 * began work before there was a stream gives its own.
 */
export function streamLines(
  c: RewardsContext,
  log: LogEvent,
  tell: (lines: LineWriter, gone: AbortSignal) => Promise<void>,
  gone: AbortController = watchCaller(c),
): Response {
  const requestId = c.get("requestId");
  c.header("content-type", lineType);
  c.header("cache-control", "no-store");
  c.header("x-accel-buffering", "no");
  return stream(c, async (out) => {
    out.onAbort(() => gone.abort());
    const lines = createLineWriter((text) => out.write(text));
    try {
      await tell(lines, gone.signal);
    } catch (error) {
      if (gone.signal.aborted) return;
      const problem = toProblem(error);
      log(describeFailure(problem, requestId, error));
      await lines.write(encodeErrorLine(problem, requestId));
    }
  });
}

/** `type` says what line it is, so the problem's own type is left out. */
function encodeErrorLine(problem: Problem, requestId: string) {
  const retry = describeRetry(problem);
  return {
    ...describeProblem(problem, requestId),
    type: "error",
    ...(retry === undefined ? {} : { retry_after_s: retry }),
  };
}

/** What the log says of a request that failed; the cause goes nowhere else. */
export function describeFailure(
  problem: Problem,
  requestId: string,
  error: unknown,
): Parameters<LogEvent>[0] {
  const level = problem.code === "internal" ? "error" : "warn";
  return { level, message: "request failed", requestId, code: problem.code, cause: error };
}
