/**
 * `POST /v1/rewards`: reads the request, hands the batch over, answers as JSON or line by line.
 */
import type { Context } from "hono";
import { stream } from "hono/streaming";
import type { BatchHooks, GradeBatch, SampleResult } from "../rewards/batch.ts";
import type { Admission, BatchOrigin } from "../rewards/run-grading.ts";
import type { CallerVariables } from "./authentication.ts";
import { readBatchId } from "./batches-route.ts";
import { readJsonBody } from "./body.ts";
import type { LogEvent } from "./log.ts";
import { describeProblem, describeRetry, type Problem, toProblem } from "./problem.ts";
import type { RequestVariables } from "./request-id.ts";
import { encodeAnswer, encodeResultLine, encodeSummaryLine } from "./rewards-answer.ts";
import type { RewardsRequest } from "./rewards-request.ts";
import { runFinished, runNotFound } from "./runs-routes.ts";

export type AdmitBatch = (origin: BatchOrigin) => Promise<Admission>;

export interface RewardsRouteDeps {
  readonly admitBatch: AdmitBatch;
  readonly readRequest: (body: unknown) => RewardsRequest;
  readonly log: LogEvent;
}

type RewardsContext = Context<{ Variables: RequestVariables & CallerVariables }>;

/** A request and the grader that its run has given it. */
interface AdmittedRequest extends RewardsRequest {
  readonly gradeBatch: GradeBatch;
}

const STREAM_TYPE = "application/x-ndjson";

/** Makes the handler. Everything is validated before a worker is asked for. */
export function handleRewards(deps: RewardsRouteDeps) {
  return async (c: RewardsContext): Promise<Response> => {
    const batchId = readBatchId(c.get("callerId"), c.req.header("idempotency-key"));
    const { value } = await readJsonBody(c.req.raw);
    const request = await admit(deps, deps.readRequest(value), batchId);
    return prefersStream(c.req.header("accept")) ? streamAnswer(deps, c, request) : sendAnswer(c, request);
  };
}

async function admit(
  { admitBatch }: RewardsRouteDeps,
  request: RewardsRequest,
  batchId: string | null,
): Promise<AdmittedRequest> {
  const { runId } = request;
  const admission = await admitBatch({ runId, batchId });
  switch (admission.kind) {
    case "admitted":
      return { ...request, gradeBatch: admission.gradeBatch };
    case "run_not_found":
      throw runNotFound(runId);
    case "run_finished":
      throw runFinished(runId);
    default:
      return admission satisfies never;
  }
}

async function sendAnswer(c: RewardsContext, request: AdmittedRequest): Promise<Response> {
  const results = new Array<SampleResult>(request.batch.samples.length);
  const hooks: BatchHooks = {
    signal: c.req.raw.signal,
    onSample: (index, result) => {
      results[index] = result;
    },
  };
  const answer = await request.gradeBatch(request.batch, hooks);
  return c.json(encodeAnswer(answer, results, request.detail, c.get("requestId")));
}

/**
 * The status is sent before anything has run, so whatever goes wrong later is the last line. A stream that ends
 * without a summary or an error was cut.
 */
function streamAnswer(deps: RewardsRouteDeps, c: RewardsContext, request: AdmittedRequest): Response {
  const requestId = c.get("requestId");
  const gone = new AbortController();
  c.req.raw.signal.addEventListener("abort", () => gone.abort(), { once: true });
  c.header("content-type", STREAM_TYPE);
  c.header("cache-control", "no-store");
  c.header("x-accel-buffering", "no");
  return stream(c, async (lines) => {
    lines.onAbort(() => gone.abort());
    const write = (line: unknown) => lines.write(`${JSON.stringify(line)}\n`);
    try {
      const answer = await request.gradeBatch(request.batch, {
        signal: gone.signal,
        onSample: (index, result) => void write(encodeResultLine(index, result, request.detail)),
        onProgress: (done, total) => void write({ type: "progress", done, total }),
      });
      await write(encodeSummaryLine(answer, requestId));
    } catch (error) {
      if (gone.signal.aborted) return;
      const problem = toProblem(error);
      deps.log(describeFailure(problem, requestId, error));
      await write(encodeErrorLine(problem, requestId));
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

/** Whether the caller would rather have lines than one JSON value. Among equals, the one that it names first. */
export function prefersStream(accept: string | undefined): boolean {
  const ranges = (accept ?? "").split(",").map(parseRange);
  const lines = ranges.find((range) => range.type === STREAM_TYPE);
  const json = ranges.find((range) => range.type === "application/json");
  if (lines === undefined || lines.weight === 0) return false;
  if (json === undefined || lines.weight > json.weight) return true;
  return lines.weight === json.weight && ranges.indexOf(lines) < ranges.indexOf(json);
}

function parseRange(range: string): { type: string; weight: number } {
  const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
  const quality = parameters.find((parameter) => parameter.startsWith("q="));
  return { type, weight: quality === undefined ? 1 : Number(quality.slice(2)) || 0 };
}
