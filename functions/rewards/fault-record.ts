/** What faults did to the cases of one program, and what they may still do before they are its fate. */
import { Fault } from "./faults.ts";
import { type Loss, togetherMs } from "./losses.ts";

const FREE_RETURNS = 8;

/** A worker that was lost while these cases were under way. */
interface Suspicion {
  readonly loss: Loss;
  readonly cases: readonly number[];
  /** Whether it says no more than the program's loss just before it. */
  readonly isEcho: boolean;
}

export interface FaultRecord {
  readonly suspicions: Suspicion[];
  /** Cases that must be cleared before the rest of the program is handed out. */
  readonly suspects: Set<number>;
  readonly retriedCases: Set<number>;
  readonly freeReturns: Map<number, number>;
}

export function createFaultRecord(): FaultRecord {
  return { suspicions: [], suspects: new Set(), retriedCases: new Set(), freeReturns: new Map() };
}

/**
 * Notes a worker that was lost while these cases were under way; whether the loss is held against the program by now.
 *
 * Of two losses within a moment the second is an echo: whatever ended the first worker may have ended the one that the
 * program was handed to at once, and nobody else was there to tell. A program has one echo in its life, so that one that
 * ends workers costs a worker more and no longer.
 */
export function noteSuspicion({ suspicions }: FaultRecord, loss: Loss, cases: readonly number[]): boolean {
  const isSoon = suspicions.some((before) => isHeld(before) && loss.atMs - before.loss.atMs <= togetherMs);
  const suspicion = { loss, cases, isEcho: isSoon && !suspicions.some(({ isEcho }) => isEcho) };
  suspicions.push(suspicion);
  return isHeld(suspicion);
}

/** Losses that are held against the program. */
export function countLosses({ suspicions }: FaultRecord): number {
  return suspicions.filter(isHeld).length;
}

function isHeld({ loss, isEcho }: Suspicion): boolean {
  return !isEcho && !loss.isExcused();
}

/** Whether the case has used up its retry. Losses that were excused afterwards cost nothing. */
export function isRetried({ retriedCases, suspicions }: FaultRecord, caseIndex: number): boolean {
  if (retriedCases.has(caseIndex)) return true;
  return suspicions.some((suspicion) => suspicion.cases.includes(caseIndex) && isHeld(suspicion));
}

/** Counts a return that costs no retry; once they are used up it costs the retry; false when that is gone too. */
export function chargeFreeReturn(record: FaultRecord, caseIndex: number): boolean {
  const soFar = record.freeReturns.get(caseIndex) ?? 0;
  if (soFar < FREE_RETURNS) {
    record.freeReturns.set(caseIndex, soFar + 1);
    return true;
  }
  if (isRetried(record, caseIndex)) return false;
  record.retriedCases.add(caseIndex);
  return true;
}

/** True when the case was the last suspect of its program. */
export function clearSuspect(record: FaultRecord | null, caseIndex: number): boolean {
  return record?.suspects.delete(caseIndex) === true && record.suspects.size === 0;
}

export function describePoison(fault: Fault): Fault {
  const detail =
    "A second worker was lost while it ran nothing but this program, so the program may be what ends workers. " +
    "Sending it again is not worth it.";
  return new Fault("worker_lost", detail, { retryable: false, cause: fault });
}

/** Of a program that was alone when several workers in turn were lost before it had started. */
export function describeUnstarted(fault: Fault, losses: number, othersStarted: boolean): Fault {
  const detail =
    `${losses} workers in turn were lost before they had started this program, which they were given alone. ` +
    (othersStarted
      ? "Others started, so it may be what ends workers. Sending it again is not worth it."
      : "Send it again later.");
  return new Fault("worker_lost", detail, { retryable: !othersStarted, cause: fault });
}
