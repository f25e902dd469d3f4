/**
 * Batches on a platform that ends requests at its own time, and that wants to know how each batch went.
 *
 * A batch is over, and told of, before its answer is complete: nothing is sure to run afterwards.
 */
import type { Batch, BatchAnswer, BatchHooks, GradeBatch, SampleResult, Usage } from "./batch.ts";
import { closingMs, watchClosingTime } from "./closing-time.ts";
import { endsBatch, Fault, type FaultCode } from "./faults.ts";
import type { Clock } from "./ports.ts";
import type { RunGrader } from "./run-grading.ts";

/** How a batch went, in numbers. */
export interface BatchReport {
  readonly runId: string;
  readonly samples: number;
  /** Samples without a reward; all of them when the platform's failure left the batch without an answer. */
  readonly faults: number;
  /** Those of them that have a fault of their own, by its code. */
  readonly faultCodes: Readonly<Partial<Record<FaultCode, number>>>;
  /** Why there is no answer; undefined when there is one. */
  readonly failure?: unknown;
  /** Undefined without an answer. */
  readonly usage?: Usage;
}

/** What surrounds the requests of this process. */
export interface RequestHost {
  /** Time that the platform leaves the request under way. Infinite where nothing ends requests. */
  timeLeftMs(): number;
  /** Told for which run the request under way is. */
  noteRun(runId: string): void;
  /** Told once per graded batch, before its answer is complete. Must not throw. */
  reportBatch(report: BatchReport): void;
  /** Told of each batch that the platform's failure kept from being let in. Must not throw. */
  reportRefusal(runId: string, failure: unknown): void;
}

/** The same admission, of batches that end before the platform ends them and are reported to it. */
export function hostBatches(
  admitBatch: RunGrader["admitBatch"],
  host: RequestHost,
  clock: Clock,
): RunGrader["admitBatch"] {
  return async (origin) => {
    host.noteRun(origin.runId);
    const admission = await admitBatch(origin).catch((failure: unknown) => {
      if (!isUnwanted(failure)) host.reportRefusal(origin.runId, failure);
      throw failure;
    });
    if (admission.kind !== "admitted") return admission;
    return { ...admission, gradeBatch: hostBatch(admission.gradeBatch, origin.runId, host, clock) };
  };
}

function hostBatch(gradeBatch: GradeBatch, runId: string, host: RequestHost, clock: Clock): GradeBatch {
  return async (batch, hooks) => {
    const samples = batch.samples.length;
    const answerBytes = hooks.answerBytes ?? (() => ({ total: 0, unsent: 0 }));
    const closing = watchClosingTime(clock, clock.nowMs() + host.timeLeftMs(), samples, answerBytes);
    let done = 0;
    const faultCodes: Partial<Record<FaultCode, number>> = {};
    const onSample: BatchHooks["onSample"] = (index, result) => {
      countFault(faultCodes, result);
      hooks.onSample?.(index, result);
      done += 1;
      closing.look(samples - done);
    };
    const report = (more: Pick<BatchReport, "faults"> & Partial<BatchReport>) =>
      host.reportBatch({ runId, samples, faultCodes, ...more });
    let answer: BatchAnswer;
    try {
      const timeIsUp = closing.signal;
      answer = await gradeBatch(shorten(batch, host), { ...hooks, onSample, timeIsUp });
    } catch (failure) {
      report({ failure, faults: isUnwanted(failure) ? 0 : samples });
      throw failure;
    } finally {
      closing.stop();
    }
    report({ usage: answer.usage, faults: answer.rewards.filter((reward) => reward === null).length });
    return answer;
  };
}

/** Whether it is nobody's failure: the answer is wanted no more, or is asked for again after a restart. */
function isUnwanted(failure: unknown): boolean {
  return failure instanceof Fault && (endsBatch(failure) || failure.code === "stopping");
}

function shorten(batch: Batch, host: RequestHost): Batch {
  const leftMs = Math.max(1, host.timeLeftMs() - closingMs);
  return leftMs < batch.deadlineMs ? { ...batch, deadlineMs: leftMs } : batch;
}

function countFault(codes: Partial<Record<FaultCode, number>>, result: SampleResult): void {
  if (result.kind !== "fault") return;
  codes[result.fault.code] = (codes[result.fault.code] ?? 0) + 1;
}
