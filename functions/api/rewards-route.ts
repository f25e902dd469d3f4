/**
 * `POST /v1/rewards`: reads the request, hands the batch over, answers as JSON or line by line.
 */
import { createHash } from "node:crypto";
import type { BatchKey } from "../pool/batches/batch-record.ts";
import type { BatchHooks, GradeBatch, SampleResult } from "../rewards/batch.ts";
import type { Clock } from "../rewards/ports.ts";
import type { Admission, BatchOrigin } from "../rewards/run-grading.ts";
import { lineType, type RewardsContext, streamLines } from "./answer-lines.ts";
import { readBatchId } from "./batches-route.ts";
import { readJsonBody } from "./body.ts";
import type { LogEvent } from "./log.ts";
import { Problem } from "./problem.ts";
import { reportProgress } from "./progress.ts";
import { type AnswerRecorder, createAnswerRecorder } from "./recorded-answer.ts";
import { sendRecorded, streamRecorded } from "./recorded-replay.ts";
import {
  encodeAnswer,
  encodeOutcome,
  encodeResultLine,
  encodeSample,
  encodeSummaryLine,
  encodeUsage,
} from "./rewards-answer.ts";
import type { RewardsRequest } from "./rewards-request.ts";
import { runFinished, runNotFound } from "./runs-routes.ts";

export type AdmitBatch = (origin: BatchOrigin) => Promise<Admission>;

export interface RewardsRouteDeps {
  readonly admitBatch: AdmitBatch;
  readonly readRequest: (body: unknown) => RewardsRequest;
  readonly clock: Clock;
  readonly log: LogEvent;
}

/** Makes the handler. Everything is validated before a worker is asked for. */
export function handleRewards(deps: RewardsRouteDeps) {
  return async (c: RewardsContext): Promise<Response> => {
    const { request, key } = await readKeyedRequest(deps, c);
    const { runId } = request;
    const isStream = prefersStream(c.req.header("accept"));
    const admission = await deps.admitBatch({
      runId,
      key,
      deadlineMs: request.batch.deadlineMs,
      signal: c.req.raw.signal,
    });
    switch (admission.kind) {
      case "admitted":
        return answerBatch(deps, c, request, { gradeBatch: admission.gradeBatch, key, isStream });
      case "answered":
        return isStream
          ? streamRecorded(c, deps.log, admission.answer)
          : sendRecorded(c, admission.answer, request.detail);
      case "in_progress":
        throw inProgress();
      case "idempotency_mismatch":
        throw mismatch();
      case "run_not_found":
        throw runNotFound(runId);
      case "run_finished":
        throw runFinished(runId);
      default:
        return admission satisfies never;
    }
  };
}

/** The request, and by what it is known when it is sent again. The body's bytes are let go of. */
async function readKeyedRequest({ readRequest }: RewardsRouteDeps, c: RewardsContext) {
  const batchId = readBatchId(c.get("callerId"), c.req.header("idempotency-key"));
  const { bytes, value } = await readJsonBody(c.req.raw);
  const request = readRequest(value);
  const key: BatchKey | null =
    batchId === null ? null : { batchId, bodyHash: createHash("sha256").update(bytes).digest("base64url") };
  return { request, key };
}

function inProgress(): Problem {
  const detail =
    "The first request with this Idempotency-Key is under way. Nothing was run for this one. Send it again: once the first is graded, the answer is the same.";
  return new Problem("in_progress", detail);
}

function mismatch(): Problem {
  const detail =
    "This Idempotency-Key was sent with another body in the last hour. Nothing was run. Send the same body, or take a new key.";
  return new Problem("idempotency_mismatch", detail);
}

interface Job {
  readonly gradeBatch: GradeBatch;
  readonly key: BatchKey | null;
  readonly isStream: boolean;
}

function answerBatch(
  deps: RewardsRouteDeps,
  c: RewardsContext,
  request: RewardsRequest,
  job: Job,
): Response | Promise<Response> {
  const recorder = job.key === null ? null : createAnswerRecorder(request.detail);
  const gradeBatch: GradeBatch = async (batch, hooks) => {
    try {
      return await job.gradeBatch(batch, recorder === null ? hooks : withRecorder(hooks, recorder));
    } finally {
      recorder?.discard();
    }
  };
  return job.isStream ? streamAnswer(deps, c, request, gradeBatch) : sendAnswer(c, request, gradeBatch);
}

function withRecorder(hooks: BatchHooks, recorder: AnswerRecorder): BatchHooks {
  return {
    ...hooks,
    encodeRecord: recorder.finish,
    onSample(index, result) {
      recorder.add(index, result);
      hooks.onSample?.(index, result);
    },
  };
}

async function sendAnswer(
  c: RewardsContext,
  request: RewardsRequest,
  gradeBatch: GradeBatch,
): Promise<Response> {
  const results = new Array<SampleResult>(request.batch.samples.length);
  const { rewards, usage } = await gradeBatch(request.batch, {
    signal: c.req.raw.signal,
    onSample: (index, result) => {
      results[index] = result;
    },
  });
  const outcome = encodeOutcome(results, request.detail);
  return c.json(encodeAnswer(rewards, outcome, encodeUsage(usage), c.get("requestId")));
}

function streamAnswer(
  { clock, log }: RewardsRouteDeps,
  c: RewardsContext,
  { batch, detail }: RewardsRequest,
  gradeBatch: GradeBatch,
): Response {
  return streamLines(c, log, async (lines, gone) => {
    const total = batch.samples.length;
    let done = 0;
    const progress = reportProgress(clock, () => void lines.write({ type: "progress", done, total }));
    const onSample = (index: number, result: SampleResult) => {
      done += 1;
      lines.gather(encodeResultLine(index, encodeSample(result, detail)));
    };
    const grading = gradeBatch(batch, { signal: gone, onSample });
    const { rewards, usage } = await grading.finally(progress.stop);
    await lines.write(encodeSummaryLine(rewards, encodeUsage(usage), c.get("requestId")));
  });
}

/** Whether the caller would rather have lines than one JSON value. Among equals, the one that it names first. */
export function prefersStream(accept: string | undefined): boolean {
  const ranges = (accept ?? "").split(",").map(parseRange);
  const lines = ranges.find((range) => range.type === lineType);
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
