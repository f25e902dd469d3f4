/**
 * What one batch is, and what comes of it. The words are those of the HTTP contract, without its JSON.
 */
import type { Completion, ExtractionOptions, NoProgramReason } from "../grading/extraction.ts";
import type { Verdict } from "../grading/verdict.ts";
import type { FaultCode } from "./faults.ts";
import type { HeldText } from "./held-text.ts";
import type { PreparedTask } from "./task.ts";

export interface Sample {
  readonly task: PreparedTask;
  /** One that is held is let go of while the batch is planned: such a batch is graded once. */
  readonly completion: Completion | HeldText;
}

/** The longest time that a batch may ask for: what it needs must last for so long. */
export const longestDeadlineMs = 840_000;

export interface Batch {
  readonly samples: readonly Sample[];
  readonly extraction: ExtractionOptions;
  /** Counted from the call. What is not graded by then is a `deadline_exceeded` fault. */
  readonly deadlineMs: number;
  /** Keep each case's standard output and the end of its standard error. */
  readonly keepOutput: boolean;
}

/** What happened on one test case, and what it cost. */
export interface CaseResult {
  readonly verdict: Verdict;
  /** Which of the task's test cases it is, where not all of them are run. */
  readonly caseNumber?: number | undefined;
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakRssKib: number;
  /** Only where the batch keeps outputs; null when it was not UTF-8. Left out when the batch's room for it is used up. */
  readonly stdout?: string | null;
  readonly stderrTail?: string;
}

/** A test case that was not run, or not to its end: another one had failed, which decides the reward. */
export interface CaseNotRun {
  readonly verdict: null;
  readonly caseNumber?: number | undefined;
}

/** A fault as data: the sample has no reward, and this says why. */
export interface SampleFault {
  readonly code: FaultCode;
  readonly detail: string;
  readonly retryable: boolean;
}

/** What came of one sample. Only a fault has no reward. */
export type SampleResult =
  | {
      readonly kind: "graded";
      readonly reward: number;
      readonly passed: number;
      /** One per case that the task has, or that was chosen of it. */
      readonly cases: readonly (CaseResult | CaseNotRun)[];
    }
  | {
      readonly kind: "no_program";
      readonly reward: 0;
      readonly reason: NoProgramReason;
      readonly total: number;
    }
  | { readonly kind: "syntax_error"; readonly reward: 0; readonly reason: string; readonly total: number }
  | { readonly kind: "fault"; readonly reward: null; readonly fault: SampleFault };

/** What a batch cost. */
export interface Usage {
  readonly wallMs: number;
  /** Until the first worker was had; all of it when there was none. */
  readonly queueMs: number;
  /** Different workers that took part. */
  readonly workers: number;
  /** Time that workers were held, added up; for a run, also that in which sandboxes were started for the batch. */
  readonly workerSeconds: number;
  /** Workers that had to be created for this batch. */
  readonly workersCreated: number;
  /** Programs sent to a worker again because of a fault, each time counted. */
  readonly retries: number;
  /** Programs that a worker started or judged. */
  readonly programsRun: number;
  /** Samples that needed no run of their own, being equal to another one. */
  readonly duplicates: number;
  /** What its own worker seconds cost, where rates are known. */
  readonly costUsd?: number;
  /**
   * Worker time, idle time too, since the batch of its run before this one, where there are runs. Null when the run's
   * record could not be reached.
   */
  readonly workerSecondsSincePreviousBatch?: number | null;
}

export interface BatchAnswer {
  /** One per sample, in order. */
  readonly rewards: readonly (number | null)[];
  readonly usage: Usage;
}

/** An answer as far as it is known: all of it, and what its caller has not been sent. */
export interface AnswerBytes {
  readonly total: number;
  readonly unsent: number;
}

export interface BatchHooks {
  /** Aborting it stops every program; the call throws the fault that is its reason, else `cancelled`. */
  readonly signal: AbortSignal;
  /** Aborted when the batch must end before its deadline; what is not graded then is a `deadline_exceeded` fault. */
  readonly timeIsUp?: AbortSignal;
  /** How long the answer is by now, after the results that `onSample` was told. */
  readonly answerBytes?: () => AnswerBytes;
  /** Called once per sample as it ends, in any order. Must not throw. */
  readonly onSample?: (index: number, result: SampleResult) => void;
  /**
   * The whole answer, as it is to be recorded for those who send the batch again under its key; null when it has no
   * place in a record. Asked once, of a batch that has a key and an answer without faults.
   */
  readonly encodeRecord?: (answer: BatchAnswer) => Promise<Uint8Array | null>;
}

/**
 * Grades one batch.
 *
 * Throws a `Fault` only when no program was started: `no_capacity`, `sandbox_unavailable`, `store_unavailable`,
 * `isolation_failed` or `misconfigured`; and `cancelled`, `in_progress`, `run_finished` or `stopping` when it was told to
 * stop. Of a batch with a key also `store_unavailable` when it was graded and its answer could not be recorded. Every other fault is
 * data in a sample's result. All workers are back in the pool when it returns or throws.
 */
export type GradeBatch = (batch: Batch, hooks: BatchHooks) => Promise<BatchAnswer>;
