/** What a Lambda says of its work: lines with the ids of the request that they are about, and numbers for alarms. */
import { createTelemetry as createPowertools, type MetricValues } from "../adapters/powertools.ts";
import { createEventLog, describeError, type LineLog } from "../log-lines.ts";
import type { SweepReport } from "../pool/sweep/report.ts";
import type { BatchReport } from "../rewards/hosted-batches.ts";
import { currentInvocation } from "./invocation.ts";

export interface LambdaTelemetry extends LineLog {
  /**
   * One line, and `Samples`, `Faults` (samples that the platform failed to grade), `Retries`, `WorkersCreated`,
   * `QueueMs`, `BatchMs`.
   */
  readonly reportBatch: (report: BatchReport) => void;
  /** One line, and `BatchesRefused`: a stream that was begun before it was refused is no 5xx. */
  readonly reportRefusal: (runId: string, failure: unknown) => void;
  /** One line, and `OrphansKilled`, `SweepFailures` (1 when something of the pass went wrong). */
  readonly reportSweep: (report: SweepReport) => void;
  /** A pass that could not even begin: the same `SweepFailures`. */
  readonly reportNoSweep: (error: unknown) => void;
}

export function createLambdaTelemetry(): LambdaTelemetry {
  const powertools = createPowertools(() => currentInvocation()?.context);
  const log = createEventLog(({ requestId, ...line }) =>
    powertools.writeLine({
      ...line,
      ...currentIds(),
      ...(requestId === undefined ? {} : { request_id: requestId }),
    }),
  );
  const writeMetrics = (values: MetricValues) => powertools.writeMetrics(values, currentIds());
  return {
    ...log,
    reportBatch(report) {
      log.writeLine(describeBatch(report));
      writeMetrics(measureBatch(report));
    },
    reportRefusal(runId, failure) {
      const message = "a batch was not let in";
      log.writeLine({ level: "warn", message, run_id: runId, ...describeError(failure) });
      writeMetrics({ BatchesRefused: 1 });
    },
    reportSweep(report) {
      const faults = report.faults.map(describeError);
      const hasFailed = report.faultCount > 0;
      log.writeLine({ level: hasFailed ? "warn" : "info", message: "swept the pool", ...report, faults });
      writeMetrics({ OrphansKilled: report.did.orphansKilled, SweepFailures: hasFailed ? 1 : 0 });
    },
    reportNoSweep(error) {
      log.writeLine({ level: "error", message: "could not sweep the pool", ...describeError(error) });
      writeMetrics({ OrphansKilled: 0, SweepFailures: 1 });
    },
  };
}

function currentIds(): Readonly<Record<string, string>> {
  const invocation = currentInvocation();
  if (invocation === undefined) return {};
  const { requestId, runId } = invocation;
  return { request_id: requestId, ...(runId === undefined ? {} : { run_id: runId }) };
}

function describeBatch({ runId, samples, faults, faultCodes, failure, usage }: BatchReport) {
  const level = faults > 0 ? ("warn" as const) : ("info" as const);
  const message = failure === undefined ? "graded a batch" : "a batch ended without an answer";
  return {
    level,
    message,
    run_id: runId,
    samples,
    faults,
    faultCodes,
    ...(failure === undefined ? {} : describeError(failure)),
    ...(usage === undefined ? {} : { usage }),
  };
}

function measureBatch({ samples, faults, usage }: BatchReport): MetricValues {
  const counts = { Samples: samples, Faults: faults };
  if (usage === undefined) return counts;
  const { retries, workersCreated, queueMs, wallMs } = usage;
  return { ...counts, Retries: retries, WorkersCreated: workersCreated, QueueMs: queueMs, BatchMs: wallMs };
}
