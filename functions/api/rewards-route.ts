/**
 * `POST /v1/rewards`: reads the request, hands the batch over, answers as JSON or line by line.
 */
import { createHash } from "node:crypto";
import type { BatchKey } from "../pool/batches/batch-record.ts";
import type { BatchHooks, GradeBatch, SampleResult } from "../rewards/batch.ts";
import type { Clock } from "../rewards/ports.ts";
import { lineType, type RewardsContext, streamLines, watchCaller } from "./answer-lines.ts";
import { createAnswerText } from "./answer-text.ts";
import { type AdmitBatch, isSettledSoon, type Welcome, welcomeBatch } from "./batch-admission.ts";
import { readBatchId } from "./batches-route.ts";
import { readJsonBody } from "./body.ts";
import type { LineWriter } from "./line-writer.ts";
import type { LogEvent } from "./log.ts";
import { reportProgress } from "./progress.ts";
import { type AnswerRecorder, createAnswerRecorder } from "./recorded-answer.ts";
import { sendRecorded, streamRecorded, tellRecorded } from "./recorded-replay.ts";
import {
  type Detail,
  encodeResultLine,
  encodeSample,
  encodeSummaryLine,
  encodeUsage,
} from "./rewards-answer.ts";
import type { RewardsRequest } from "./rewards-request.ts";

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
    const isStream = prefersStream(c.req.header("accept"));
    const gone = watchCaller(c);
    const welcome = welcomeBatch(deps.admitBatch, request, { key, isStream, signal: gone.signal });
    const isKnown = isStream ? await isSettledSoon(deps.clock, welcome) : true;
    if (!isKnown) return streamAnswer(deps, c, { request, key, welcome, gone });
    const known = await welcome;
    if (known.kind === "answered") {
      return isStream
        ? streamRecorded(c, deps.log, known.answer)
        : sendRecorded(c, known.answer, request.detail);
    }
    return isStream
      ? streamAnswer(deps, c, { request, key, welcome, gone })
      : sendAnswer(c, request, recordUnderKey(known.gradeBatch, key, request.detail));
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

/** The same grading, of which a record is made if the batch has a key. */
function recordUnderKey(gradeBatch: GradeBatch, key: BatchKey | null, detail: Detail): GradeBatch {
  if (key === null) return gradeBatch;
  return async (batch, hooks) => {
    const recorder = createAnswerRecorder(detail);
    try {
      return await gradeBatch(batch, withRecorder(hooks, recorder));
    } finally {
      recorder.discard();
    }
  };
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
  const text = createAnswerText(request.detail, request.batch.samples.length);
  const answer = await gradeBatch(request.batch, {
    signal: c.req.raw.signal,
    onSample: text.add,
    answerBytes: text.bytes,
  });
  return c.body(text.finish(answer, c.get("requestId")), 200, { "content-type": "application/json" });
}

interface StreamedBatch {
  readonly request: RewardsRequest;
  readonly key: BatchKey | null;
  /** May still be waited for. */
  readonly welcome: Promise<Welcome>;
  readonly gone: AbortController;
}

function streamAnswer(
  { clock, log }: RewardsRouteDeps,
  c: RewardsContext,
  { request: { batch, detail }, key, welcome, gone }: StreamedBatch,
): Response {
  const requestId = c.get("requestId");
  const tell = async (lines: LineWriter) => {
    const total = batch.samples.length;
    let done = 0;
    const progress = reportProgress(clock, () => void lines.write({ type: "progress", done, total }));
    const onSample = (index: number, result: SampleResult) => {
      done += 1;
      lines.gather(encodeResultLine(index, encodeSample(result, detail)));
    };
    const answering = welcome.then(async (known) => {
      if (known.kind === "answered") return known;
      const gradeBatch = recordUnderKey(known.gradeBatch, key, detail);
      const hooks = { signal: gone.signal, onSample, answerBytes: lines.bytes };
      return { kind: "graded", ...(await gradeBatch(batch, hooks)) } as const;
    });
    const answer = await answering.finally(progress.stop);
    if (answer.kind === "answered") return tellRecorded(lines, gone.signal, answer.answer, requestId);
    await lines.write(encodeSummaryLine(answer.rewards, encodeUsage(answer.usage), requestId));
  };
  return streamLines(c, log, tell, gone);
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
