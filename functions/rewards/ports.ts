/**
 * What grading a batch needs from the outside: workers that run programs, and a clock.
 *
 * The types describe one direction only: `rewards/` uses them, adapters implement them. Nothing here knows HTTP,
 * E2B, AWS or the supervisor's wire format.
 */

import type { Fault } from "./faults.ts";

/** Limits of one test case. All are hard: a program over one of them gets that limit's verdict. */
export interface Limits {
  /** Time from the moment the program is ready, without the time it waited for a CPU. */
  readonly timeMs: number;
  /** Resident memory of all its processes together. */
  readonly memoryMib: number;
  /** Bytes on standard output. */
  readonly outputBytes: number;
}

/**
 * How a program is run: `main` on its standard input, `call` as a library of which an input says what function to call,
 * `tests` as a library for the tests that an input holds, which run in a process beside it; `checked` as `main`, with a
 * checker that judges the output afterwards: an input holds the expected output too.
 */
export type RunMode = "main" | "call" | "tests" | "checked";

/** One program and the inputs to run it on. Each input is one case, named by its index. */
export interface ProgramJob {
  readonly id: string;
  readonly source: string;
  /** `main` where nothing is said. */
  readonly mode?: RunMode;
  /** The checker's source; for `checked` only. Programs of one chunk may share it. */
  readonly checker?: string;
  readonly inputs: readonly string[];
  readonly limits: Limits;
}

/** What one worker is asked to do in one request. */
export interface Chunk {
  /** New for every attempt, and not to be guessed: a worker refuses one that it has seen, and its answer names it. */
  readonly chunkId: string;
  /** Time left, counted from the moment the worker reads the request. */
  readonly deadlineMs: number;
  readonly programs: readonly ProgramJob[];
}

/** How a case that ran came to its end. `invalid_test`, `starved` and `isolation_failed` say nothing of the program. */
export type CaseEnd =
  | { readonly kind: "exited"; readonly exitCode: number }
  | { readonly kind: "signaled"; readonly signal: string }
  | { readonly kind: "time_limit" }
  | { readonly kind: "memory_limit" }
  | { readonly kind: "output_limit" }
  /** No program could pass the test, or every one would. */
  | { readonly kind: "invalid_test"; readonly detail: string }
  | { readonly kind: "starved"; readonly detail: string }
  | { readonly kind: "isolation_failed"; readonly detail: string };

/** What a case left behind. */
export interface CaseOutcome {
  readonly end: CaseEnd;
  /** Standard output up to `outputBytes`; null when it is not valid UTF-8. */
  readonly stdout: string | null;
  /** What the called function returned, or what the tests or the checker said, as far as it was told; missing in `main`. */
  readonly result?: string;
  /** The last bytes of standard error, undecodable ones escaped. */
  readonly stderrTail: string;
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakRssKib: number;
}

/**
 * Why a chunk's stream ended. Only after `completed` has every case an end. `too_large`: the worker takes no
 * request of this size; `kept_off`: somebody before it lets none through. Nothing of the chunk was started then, and
 * nothing is wrong with the worker.
 */
export type ChunkEnd = "completed" | "deadline" | "cancelled" | "superseded" | "too_large" | "kept_off";

/** What a worker tells while it works on a chunk. The last event of a whole stream is `summary`. */
export type WorkerEvent =
  | { readonly kind: "case_started"; readonly programId: string; readonly caseIndex: number }
  | {
      readonly kind: "case_ended";
      readonly programId: string;
      readonly caseIndex: number;
      readonly outcome: CaseOutcome;
    }
  /** Judged once per program, before any of its code runs; its other cases never start. */
  | { readonly kind: "syntax_error"; readonly programId: string; readonly detail: string }
  /** The worker can't run the program within its task's limits, nor could another one; its cases never start. */
  | { readonly kind: "invalid_task"; readonly programId: string; readonly detail: string }
  | { readonly kind: "beat" }
  | { readonly kind: "summary"; readonly end: ChunkEnd };

/**
 * The exclusive right to a worker.
 *
 * `execute` yields the worker's events; it throws a `Fault` when the worker is lost (silence for 15 s is a loss too) or
 * breaks the protocol, and ends with a `summary` otherwise. Aborting `signal` stops the programs. Chunks may overlap on one lease.
 */
export interface WorkerLease {
  readonly workerId: string;
  /** Whether the worker had to be created for this lease. */
  readonly created?: boolean;
  /** When the worker's life ends: what runs then is lost. Before that a holder gives it back, at a chunk's end. */
  readonly livesUntilMs?: number;
  execute(chunk: Chunk, signal: AbortSignal): AsyncIterable<WorkerEvent>;
  /** Gives the worker back; a `broken` one is drained and never used again. Never throws. */
  release(condition: "healthy" | "broken"): Promise<void>;
}

export interface AcquireOptions {
  readonly deadlineAtMs: number;
  readonly signal: AbortSignal;
  /** Told, while it waits, whose fault that is as far as is known; null: nobody's, no worker is free. Must not throw. */
  readonly onTrouble?: (trouble: Fault | null) => void;
}

/** Where leases come from. */
export interface WorkerSource {
  /**
   * Waits for a free worker.
   *
   * Resolves to null when `signal` is aborted or the deadline passes first (`no_capacity`); throws a `Fault` when
   * none can be had at all (`misconfigured`, `sandbox_unavailable`, `store_unavailable`, `isolation_failed`).
   */
  acquire(options: AcquireOptions): Promise<WorkerLease | null>;
  /**
   * Whether one of the batch's workers should go to somebody who waits with none. Asked at the end of a chunk of a worker
   * that was held for some seconds; it is given back then. Who gives the only one back asks for another a second later,
   * and is a waiter like others from then on. Never throws.
   */
  isWantedElsewhere?(): Promise<boolean>;
}

/** Time, injected. `nowMs` is Unix time; `sleep` resolves early, without an error, when the signal is aborted. */
export interface Clock {
  nowMs(): number;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}
