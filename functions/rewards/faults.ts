/**
 * Faults: the platform failed and nothing is known of the program.
 *
 * A fault is never a verdict and never a number. It is an exception of this one type where it happens, and data
 * (`reward: null` with its code) in the answer. What a *program* does wrong is a verdict, never a `Fault`.
 */
export type FaultCode =
  | "no_capacity"
  | "worker_lost"
  | "supervisor_protocol"
  | "isolation_failed"
  | "starved"
  | "deadline_exceeded"
  | "sandbox_unavailable"
  | "store_unavailable"
  | "invalid_task"
  | "misconfigured"
  | "cancelled"
  | "in_progress"
  | "run_finished"
  | "stopping";

export class Fault extends Error {
  readonly code: FaultCode;
  /** Whether the same sample, sent again, may be graded. */
  readonly retryable: boolean;
  /** How long whoever refused asked us to wait, from the moment of the refusal; null when it said nothing. */
  readonly retryAfterMs: number | null;
  /** Of a lost worker: that it is known what ended it, and that no program did. */
  readonly isKnownCause: boolean;

  constructor(
    code: FaultCode,
    detail: string,
    options: {
      readonly retryable?: boolean;
      readonly retryAfterMs?: number | null;
      readonly isKnownCause?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: options.cause });
    this.name = "Fault";
    this.code = code;
    this.retryAfterMs = options.retryAfterMs ?? null;
    this.isKnownCause = options.isKnownCause ?? false;
    this.retryable = options.retryable ?? (code !== "invalid_task" && code !== "misconfigured");
  }
}

/**
 * Whether nobody wants the batch's answer any more, so that the fault is not of a sample but of the whole batch:
 * `in_progress` says that another attempt at it has taken its place.
 */
export function endsBatch({ code }: Fault): boolean {
  return code === "cancelled" || code === "in_progress" || code === "run_finished";
}

/** Why a batch was told to stop by this signal: for the fault that it was aborted with, else since nobody waits. */
export function whyStopped({ reason }: AbortSignal): Fault {
  return reason instanceof Fault ? reason : new Fault("cancelled", "The batch was cancelled.");
}
