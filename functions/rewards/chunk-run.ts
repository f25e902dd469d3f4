/**
 * One chunk on one worker: its events go to the board as they arrive, and what it leaves without an end goes back.
 */
import type { CaseResult } from "./batch.ts";
import type { Board } from "./board.ts";
import { type ChunkLosses, giveBackRest } from "./chunk-rest.ts";
import { endsBatch, Fault } from "./faults.ts";
import { createPace, type Pace } from "./pace.ts";
import type { PlannedProgram } from "./plan.ts";
import type { CaseOutcome, Chunk, ChunkEnd, WorkerEvent, WorkerLease } from "./ports.ts";
import {
  type CaseState,
  countOwnWaiting,
  handOverHalf,
  hasOwnWaiting,
  hasRestOf,
  isDoneElsewhere,
  restIn,
  type Tracked,
  type TrackedChunk,
  track,
} from "./tracked-cases.ts";
import { type Assignment, countCases } from "./work-queue.ts";
import { type ChunkCondition, conditionAfterFault } from "./worker-condition.ts";

export interface ChunkSetup {
  readonly board: Board;
  readonly chunkId: string;
  readonly deadlineMs: number;
  /** What is left of it. */
  readonly leftMs: () => number;
  /** Told when the worker's clock rings at the deadline before ours. */
  readonly noteTimeIsUp: () => void;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Told, again and again near its end, how long the rest takes if it goes on at the chunk's pace. */
  readonly noteLeftMs: (leftMs: number) => void;
  /** Whether the worker has not ended the chunk that it was given before this one. */
  readonly isBehindAnother: () => boolean;
  /** Told of each case that starts. */
  readonly noteStarted: () => void;
  readonly losses: ChunkLosses;
  /** What an outcome means for its test case. */
  readonly judge: (program: PlannedProgram, caseIndex: number, outcome: CaseOutcome) => Judgement;
}

/** Either what happened on the test case, or the fault that kept it from happening. */
export type Judgement =
  | { readonly kind: "case"; readonly result: CaseResult }
  | { readonly kind: "fault"; readonly fault: Fault };

/** How much earlier than ours a worker's clock may ring. */
const clockToleranceMs = 1_000;

/** A chunk that a worker was given. */
export interface RunningChunk {
  readonly ended: Promise<ChunkCondition>;
  /** Cases that nobody but this worker is to run, and that it has not started. */
  waitingCases(): number;
  /** Whether there are any: asked at each turn of events, while the number matters only when some are handed over. */
  hasWaiting(): boolean;
  readonly pace: Pick<Pace, "msPerCase" | "unstartedMs">;
  /** The latter half of those cases, for another worker: what ends first counts. */
  handOver(): Assignment | null;
}

interface ChunkRun {
  readonly setup: ChunkSetup;
  readonly assignment: Assignment;
  readonly tracked: TrackedChunk;
  readonly pace: Pace;
  /** Some of it was handed over. */
  isShared: boolean;
  /** Aborted when all that is left of it is done by another worker. */
  readonly isNeedless: AbortController;
  /** A case was not isolated here: the worker is not to be used again. */
  isolationFailed: boolean;
}

/**
 * Runs an assignment; `ended` tells whether its worker may be used again.
 *
 * It rejects with a fault that ends the batch when somebody else stopped it on the worker, and with whatever is not a
 * fault.
 */
export function runChunk(lease: WorkerLease, assignment: Assignment, setup: ChunkSetup): RunningChunk {
  const run: ChunkRun = {
    setup,
    assignment,
    tracked: track(assignment),
    pace: createPace(countCases(assignment.portions), setup.nowMs),
    isShared: false,
    isNeedless: new AbortController(),
    isolationFailed: false,
  };
  const mayBeShared = !assignment.alone && assignment.unstartedLosses === 0;
  return {
    ended: runToItsEnd(lease, run),
    waitingCases: () => (mayBeShared ? countOwnWaiting(run.tracked, setup.board) : 0),
    hasWaiting: () => mayBeShared && hasOwnWaiting(run.tracked, setup.board),
    pace: run.pace,
    handOver() {
      const portions = mayBeShared ? handOverHalf(run.tracked, setup.board) : [];
      if (portions.length === 0) return null;
      run.isShared = true;
      return { ...assignment, portions };
    },
  };
}

async function runToItsEnd(lease: WorkerLease, run: ChunkRun): Promise<ChunkCondition> {
  const { assignment, setup, isNeedless, tracked } = run;
  try {
    let end: ChunkEnd | null = null;
    const signal = AbortSignal.any([setup.signal, isNeedless.signal]);
    for await (const event of lease.execute(describeChunk(assignment, setup), signal)) {
      if (end !== null) throw breaksProtocol("sent a line after its summary");
      if (event.kind === "summary") end = event.end;
      else handleEvent(run, event);
      if (run.isShared && end === null && isDoneElsewhere(tracked, setup.board)) isNeedless.abort();
    }
    if (isNeedless.signal.aborted) return conditionAfter(run);
    if (end === null) throw breaksProtocol("ended its answer without a summary");
    return await settleRest(run, end);
  } catch (error) {
    if (setup.signal.aborted) return "healthy";
    if (isNeedless.signal.aborted) return conditionAfter(run);
    if (!(error instanceof Fault) || endsBatch(error)) throw error;
    await giveBackRest({ ...setup, assignment, tracked }, error);
    return conditionAfterFault(error);
  }
}

function conditionAfter({ isolationFailed }: ChunkRun): "healthy" | "broken" {
  return isolationFailed ? "broken" : "healthy";
}

function describeChunk(assignment: Assignment, setup: ChunkSetup): Chunk {
  const programs = assignment.portions.map(({ program, caseIndexes }) => ({
    id: program.id,
    source: program.source.toString(),
    ...(program.task.mode === "main" ? {} : { mode: program.task.mode }),
    ...(program.task.checker === null ? {} : { checker: program.task.checker }),
    inputs: caseIndexes.map((caseIndex) => program.task.inputs[caseIndex] ?? ""),
    limits: program.task.limits,
  }));
  return { chunkId: setup.chunkId, deadlineMs: setup.deadlineMs, programs };
}

function handleEvent(run: ChunkRun, event: Exclude<WorkerEvent, { kind: "summary" }>): void {
  switch (event.kind) {
    case "beat":
      return;
    case "case_started": {
      const tracked = findCase(run, event.programId, event.caseIndex, "waiting");
      tracked.states[event.caseIndex] = "started";
      run.pace.noteStart();
      run.setup.noteStarted();
      run.setup.board.noteStarted(tracked.program);
      return;
    }
    case "case_ended": {
      const tracked = findCase(run, event.programId, event.caseIndex, "started");
      tracked.states[event.caseIndex] = "ended";
      tellPace(run, 1);
      endCase(run, tracked, tracked.caseIndexes[event.caseIndex] as number, event.outcome);
      return;
    }
    case "syntax_error": {
      const tracked = findProgram(run, event.programId);
      tracked.isJudged = true;
      tellPace(run, tracked.states.filter((state) => state !== "ended").length);
      if (run.setup.board.endAsSyntaxError(tracked.program, event.detail)) return;
      tracked.isJudged = false;
      throw breaksProtocol("found a syntax error in a program that has already run");
    }
    case "invalid_task": {
      const tracked = findProgram(run, event.programId);
      if (tracked.states.some((state) => state !== "waiting"))
        throw breaksProtocol("could not run a program that it ran");
      tracked.isJudged = true;
      run.setup.board.fail(tracked.program, new Fault("invalid_task", `The worker: ${event.detail}.`));
      return;
    }
    default:
      throw new Error(`unknown event ${JSON.stringify(event satisfies never)}`);
  }
}

function tellPace({ pace, setup }: ChunkRun, cases: number): void {
  pace.noteEnds(cases);
  const leftMs = pace.leftMs();
  if (leftMs !== null) setup.noteLeftMs(leftMs);
}

function endCase(run: ChunkRun, tracked: Tracked, caseIndex: number, outcome: CaseOutcome): void {
  const { board, judge } = run.setup;
  if (outcome.end.kind === "isolation_failed") run.isolationFailed = true;
  if (!board.isOpen(tracked.program)) return;
  const judgement = judge(tracked.program, caseIndex, outcome);
  if (judgement.kind === "case") {
    board.endCase(tracked.program, caseIndex, judgement.result);
    return;
  }
  if (judgement.fault.code === "invalid_task") {
    board.fail(tracked.program, judgement.fault);
    return;
  }
  board.giveBack(tracked.program, {
    fault: judgement.fault,
    suspects: [],
    touched: [caseIndex],
    innocent: [],
    loss: null,
    whileAlone: run.assignment.alone,
  });
}

function findProgram(run: ChunkRun, programId: string): Tracked {
  const tracked = run.tracked.get(programId);
  if (tracked === undefined) throw breaksProtocol("told of a program that it was not given");
  if (tracked.isJudged) throw breaksProtocol("told of a program that it had judged");
  return tracked;
}

function findCase(run: ChunkRun, programId: string, index: number, expected: CaseState): Tracked {
  const tracked = findProgram(run, programId);
  const state = tracked.states[index];
  if (state === undefined) throw breaksProtocol("told of a test case that it was not given");
  if (state !== expected) {
    throw breaksProtocol(`told of a case that is ${state} what only one that is ${expected} can do`);
  }
  return tracked;
}

/** A whole answer: only `completed` promises that every case has an end. */
async function settleRest(run: ChunkRun, end: ChunkEnd): Promise<"healthy" | "broken"> {
  switch (end) {
    case "completed":
      if ([...run.tracked.values()].some(hasRestOf))
        throw breaksProtocol("completed without an end for every case");
      return conditionAfter(run);
    case "deadline":
      if (run.setup.leftMs() > clockToleranceMs) throw breaksProtocol("stopped long before the deadline");
      run.setup.noteTimeIsUp();
      for (const tracked of run.tracked.values()) {
        if (hasRestOf(tracked)) run.setup.board.fail(tracked.program, deadlineExceeded());
      }
      return conditionAfter(run);
    case "cancelled":
      throw new Fault("cancelled", "The batch was cancelled.");
    case "too_large":
      if (run.pace.hasStarted()) throw breaksProtocol("refused a chunk that it had begun");
      run.setup.board.splitChunk(run.assignment, restIn(run.tracked, "waiting"));
      return "healthy";
    case "superseded":
      await giveBackRest({ ...run.setup, assignment: run.assignment, tracked: run.tracked }, takenOver());
      return "broken";
    default:
      throw new Error(`unknown end ${JSON.stringify(end satisfies never)}`);
  }
}

/** The fault of whatever has no end when the batch's time is up. */
export function deadlineExceeded(): Fault {
  const detail =
    "The batch's deadline passed before all test cases had run. Send fewer samples, or a longer deadline_ms.";
  return new Fault("deadline_exceeded", detail);
}

/** The loss of a lease says nothing about the programs that ran under it: none of them is a suspect. */
function takenOver(): Fault {
  const detail = "The worker was taken over by another holder in the middle of its work.";
  return new Fault("worker_lost", detail, { isKnownCause: true });
}

function breaksProtocol(what: string): Fault {
  return new Fault("supervisor_protocol", `The worker ${what}.`);
}
