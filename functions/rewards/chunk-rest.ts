/**
 * What becomes of the cases that a chunk leaves without an end.
 *
 * - What had started when the worker was lost, or broke the protocol, is suspected of it; unless it is known what ended
 *   the worker, or others were lost with it. What had not started is innocent then.
 * - A worker that was lost while nothing of the chunk was under way, nor of a chunk before it, was lost over nothing.
 */
import type { Board } from "./board.ts";
import type { Fault } from "./faults.ts";
import type { Loss } from "./losses.ts";
import type { PlannedProgram } from "./plan.ts";
import { restIn, type TrackedChunk } from "./tracked-cases.ts";
import { type Assignment, countCases } from "./work-queue.ts";

/** How losses of the chunk's worker are noted. */
export interface ChunkLosses {
  /** The worker was lost over one of these programs. */
  noteSuspects(programs: readonly PlannedProgram[], isFirst: boolean): Loss;
  /** Nothing was under way. Returns whether that may be due to the chunk: it was alive when it was given it, and lost. */
  noteUnstarted(isFirst: boolean, fault: Fault): boolean;
  /** Resolves when what was lost together with it is known. */
  hearOfOthers(): Promise<void>;
}

export interface Rest {
  readonly board: Board;
  readonly assignment: Assignment;
  readonly tracked: TrackedChunk;
  readonly losses: ChunkLosses;
  readonly isBehindAnother: () => boolean;
}

export async function giveBackRest(rest: Rest, fault: Fault): Promise<void> {
  const { board, assignment, tracked } = rest;
  const started = restIn(tracked, "started");
  const waiting = restIn(tracked, "waiting");
  // Where something of it had started, or the chunk before it was under way, that is what the worker was lost over.
  const isUnderWay = started.length > 0 || rest.isBehindAnother();
  if (isPassing(fault) && !isUnderWay) {
    const isSame = countCases(waiting) === countCases(assignment.portions);
    const unstartedLosses = isSame ? assignment.unstartedLosses : 0;
    const counts = rest.losses.noteUnstarted(unstartedLosses === 0, fault);
    return board.giveBackUnstarted({ ...assignment, portions: waiting, unstartedLosses }, fault, counts);
  }
  // Where only the way to the worker broke, what was under way runs alone, too: it may have been too much for it.
  const isSuspicious =
    fault.code === "supervisor_protocol" ||
    fault.code === "sandbox_unavailable" ||
    (fault.code === "worker_lost" && !fault.isKnownCause);
  const suspects = isSuspicious ? started : [];
  const loss = fault.code === "worker_lost" && suspects.length > 0 ? await noteLoss(rest, suspects) : null;
  const sparesStarted = fault.isKnownCause;
  const sparesWaiting = isUnderWay && (isSuspicious || isPassing(fault));
  for (const { program } of tracked.values()) {
    const [hot, cold] = [casesOf(started, program), casesOf(waiting, program)];
    if (hot.length + cold.length === 0) continue;
    board.giveBack(program, {
      fault,
      suspects: isSuspicious ? hot : [],
      touched: [...(isSuspicious || sparesStarted ? [] : hot), ...(sparesWaiting ? [] : cold)],
      innocent: [...(sparesStarted ? hot : []), ...(sparesWaiting ? cold : [])],
      loss,
      whileAlone: assignment.alone,
    });
  }
}

/** Faults of the platform that say nothing of what a worker was given. */
function isPassing({ code }: Fault): boolean {
  return code === "worker_lost" || code === "sandbox_unavailable" || code === "store_unavailable";
}

/** A program that was alone is judged by it, so others that were lost at the same time are heard of first. */
async function noteLoss(
  { board, losses, assignment }: Rest,
  suspects: Assignment["portions"],
): Promise<Loss> {
  const programs = suspects.map(({ program }) => program);
  const loss = losses.noteSuspects(programs, !programs.some((program) => board.hasLostWorker(program)));
  if (assignment.alone) await losses.hearOfOthers();
  return loss;
}

function casesOf(portions: Assignment["portions"], program: PlannedProgram): readonly number[] {
  return portions.find((portion) => portion.program === program)?.caseIndexes ?? [];
}
