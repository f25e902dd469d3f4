/**
 * What a batch came to, as the JSON of the interface.
 */
import type { BatchAnswer, CaseNotRun, CaseResult, SampleResult, Usage } from "../rewards/batch.ts";
import type { RewardsRequest } from "./rewards-request.ts";

export type Detail = RewardsRequest["detail"];
export type Json = Readonly<Record<string, unknown>>;

/** A whole recorded answer, to a request that is not streamed. */
export function encodeAnswer(
  rewards: BatchAnswer["rewards"],
  outcome: Json,
  usage: Json,
  requestId: string,
): Json {
  return { rewards, ...outcome, usage, request_id: requestId };
}

/** One line of a stream, as a sample ends. */
export function encodeResultLine(index: number, sample: Json): Json {
  return { type: "result", index, ...sample };
}

/** The last line of a whole stream. */
export function encodeSummaryLine(rewards: BatchAnswer["rewards"], usage: Json, requestId: string): Json {
  return { type: "summary", rewards, usage, request_id: requestId };
}

/** What a stream or a record says of one sample. */
export function encodeSample(result: SampleResult, detail: Detail): Json {
  if (detail !== "rewards") return encodeResult(result);
  const fault = result.kind === "fault" ? { fault: result.fault } : {};
  return { reward: result.reward, ...fault };
}

function encodeResult(result: SampleResult): Json {
  switch (result.kind) {
    case "graded": {
      const { reward, passed, cases } = result;
      return { reward, status: "graded", passed, total: cases.length, verdicts: cases.map(encodeCase) };
    }
    case "no_program":
    case "syntax_error": {
      const { kind, reward, reason, total } = result;
      return { reward, status: kind, reason, passed: 0, total };
    }
    case "fault":
      return { reward: null, status: "fault", fault: result.fault };
    default:
      throw new Error(`unknown result ${JSON.stringify(result satisfies never)}`);
  }
}

function encodeCase(single: CaseResult | CaseNotRun): Json {
  const number = single.caseNumber === undefined ? {} : { case: single.caseNumber };
  if (single.verdict === null) return { verdict: "not_run", ...number };
  const { verdict, wallMs, cpuMs, peakRssKib, stdout, stderrTail } = single;
  return {
    verdict: verdict.kind,
    ...number,
    ...(verdict.kind === "runtime_error" ? { exit_code: verdict.exitCode } : {}),
    ...(verdict.kind === "signaled" ? { signal: verdict.signal } : {}),
    wall_ms: wallMs,
    cpu_ms: cpuMs,
    peak_rss_kib: peakRssKib,
    ...(stdout === undefined ? {} : { stdout, stderr_tail: stderrTail }),
  };
}

/** What an answer of rewards alone says of a sample that has none. */
export function encodeFault(index: number, { fault }: Extract<SampleResult, { kind: "fault" }>): Json {
  return { index, code: fault.code, retryable: fault.retryable };
}

export function encodeUsage(usage: Usage): Json {
  return {
    wall_ms: usage.wallMs,
    queue_ms: usage.queueMs,
    workers: usage.workers,
    worker_seconds: usage.workerSeconds,
    workers_created: usage.workersCreated,
    retries: usage.retries,
    programs_run: usage.programsRun,
    duplicates: usage.duplicates,
    ...(usage.costUsd === undefined ? {} : { cost_usd: usage.costUsd }),
    ...(usage.workerSecondsSincePreviousBatch === undefined
      ? {}
      : { worker_seconds_since_previous_batch: usage.workerSecondsSincePreviousBatch }),
  };
}
