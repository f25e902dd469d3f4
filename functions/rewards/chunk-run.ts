/**
 * One chunk on one worker: its events go to the board as they arrive, and what it leaves without an end goes back.
 */
import type { CaseResult } from "./batch.ts";
import type { Board } from "./board.ts";
import { endsBatch, Fault } from "./faults.ts";
import type { PlannedProgram } from "./plan.ts";
import type { CaseOutcome, Chunk, ChunkEnd, WorkerEvent, WorkerLease } from "./ports.ts";
import type { Assignment } from "./work-queue.ts";

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
  /** What an outcome means for its test case. */
  readonly judge: (program: PlannedProgram, caseIndex: number, outcome: CaseOutcome) => Judgement;
}

/** Either what happened on the test case, or the fault that kept it from happening. */
export type Judgement =
  | { readonly kind: "case"; readonly result: CaseResult }
  | { readonly kind: "fault"; readonly fault: Fault };

/** A chunk's pace is known when a quarter of its cases have ended. */
const ENDED_TO_OPEN_CASES = 1 / 3;
/**
 * And it is believed of so many cases at most: the last of a chunk are often its slowest, and whatever is sent behind
 * them waits for them while other workers have nothing to do.
 */
const BELIEVED_OPEN_CASES = 8;
/** How much earlier than ours a worker's clock may ring. */
const clockToleranceMs = 1_000;

type CaseState = "waiting" | "started" | "ended";

/** A program's cases in this chunk, by their index in the chunk. */
interface Tracked {
  readonly program: PlannedProgram;
  readonly caseIndexes: readonly number[];
  readonly states: CaseState[];
  /** The worker has told of the program as a whole: none of its cases is to come. */
  isJudged: boolean;
}

/** How fast cases come to their end. */
interface Pace {
  firstStartAtMs: number | null;
  openCases: number;
  endedCases: number;
}

interface ChunkRun {
  readonly setup: ChunkSetup;
  readonly assignment: Assignment;
  readonly tracked: ReadonlyMap<string, Tracked>;
  readonly pace: Pace;
  /** A case was not isolated here: the worker is not to be used again. */
  isolationFailed: boolean;
}

/**
 * Runs an assignment and tells whether its worker may be used again.
 *
 * Throws a fault that ends the batch when somebody else stopped it on the worker, and whatever is not a fault.
 */
export async function runChunk(
  lease: WorkerLease,
  assignment: Assignment,
  setup: ChunkSetup,
): Promise<"healthy" | "broken"> {
  const run: ChunkRun = {
    setup,
    assignment,
    tracked: track(assignment),
    pace: { firstStartAtMs: null, openCases: countCases(assignment), endedCases: 0 },
    isolationFailed: false,
  };
  try {
    let end: ChunkEnd | null = null;
    for await (const event of lease.execute(describeChunk(assignment, setup), setup.signal)) {
      if (end !== null) throw breaksProtocol("sent a line after its summary");
      if (event.kind === "summary") end = event.end;
      else handleEvent(run, event);
    }
    if (end === null) throw breaksProtocol("ended its answer without a summary");
    return settleRest(run, end);
  } catch (error) {
    if (setup.signal.aborted) return "healthy";
    if (!(error instanceof Fault) || endsBatch(error)) throw error;
    // Where only the way broke, whatever was under way when it did is run alone, too; but the worker is as good as any.
    const isWay = error.code === "sandbox_unavailable";
    giveBackRest(run, error, isWay || error.code === "worker_lost" || error.code === "supervisor_protocol");
    return isWay ? "healthy" : "broken";
  }
}

function track(assignment: Assignment): Map<string, Tracked> {
  const tracked = new Map<string, Tracked>();
  for (const { program, caseIndexes } of assignment.portions) {
    const states = caseIndexes.map((): CaseState => "waiting");
    tracked.set(program.id, { program, caseIndexes, states, isJudged: false });
  }
  return tracked;
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
      run.pace.firstStartAtMs ??= run.setup.nowMs();
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

function countCases({ portions }: Assignment): number {
  return portions.reduce((sum, { caseIndexes }) => sum + caseIndexes.length, 0);
}

function tellPace({ pace, setup }: ChunkRun, cases: number): void {
  pace.openCases -= cases;
  pace.endedCases += cases;
  if (pace.openCases > BELIEVED_OPEN_CASES || pace.endedCases < pace.openCases * ENDED_TO_OPEN_CASES) return;
  const tookMs = setup.nowMs() - (pace.firstStartAtMs ?? setup.nowMs());
  setup.noteLeftMs((tookMs / pace.endedCases) * pace.openCases);
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
function settleRest(run: ChunkRun, end: ChunkEnd): "healthy" | "broken" {
  switch (end) {
    case "completed":
      if (hasRest(run)) throw breaksProtocol("completed without an end for every case");
      return run.isolationFailed ? "broken" : "healthy";
    case "deadline":
      if (run.setup.leftMs() > clockToleranceMs) throw breaksProtocol("stopped long before the deadline");
      run.setup.noteTimeIsUp();
      for (const tracked of run.tracked.values()) {
        if (hasRestOf(tracked)) run.setup.board.fail(tracked.program, deadlineExceeded());
      }
      return run.isolationFailed ? "broken" : "healthy";
    case "cancelled":
      throw new Fault("cancelled", "The batch was cancelled.");
    case "too_large":
      if (run.pace.firstStartAtMs !== null) throw breaksProtocol("refused a chunk that it had begun");
      run.setup.board.splitChunk(run.assignment);
      return "healthy";
    case "superseded":
      giveBackRest(run, takenOver(), false);
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
  return new Fault("worker_lost", "The worker was taken over by another holder in the middle of its work.");
}

function giveBackRest(run: ChunkRun, fault: Fault, suspicious: boolean): void {
  const open = [...run.tracked.values()].filter((tracked) => hasRestOf(tracked));
  const anyStarted = open.some((tracked) => tracked.states.includes("started"));
  // Where something of it had started, or the chunk before it was under way, that is what the worker was lost over.
  const sparesWaiting = suspicious && (anyStarted || run.setup.isBehindAnother());
  for (const tracked of open) {
    const started = casesIn(tracked, "started");
    const waiting = casesIn(tracked, "waiting");
    run.setup.board.giveBack(tracked.program, {
      fault,
      suspects: suspicious ? started : [],
      touched: sparesWaiting ? [] : [...started, ...waiting],
      innocent: sparesWaiting ? waiting : [],
      whileAlone: run.assignment.alone,
    });
  }
}

function hasRest(run: ChunkRun): boolean {
  return [...run.tracked.values()].some(hasRestOf);
}

function hasRestOf(tracked: Tracked): boolean {
  return !tracked.isJudged && tracked.states.some((state) => state !== "ended");
}

function casesIn(tracked: Tracked, wanted: CaseState): number[] {
  return tracked.caseIndexes.filter((_, index) => tracked.states[index] === wanted);
}

function breaksProtocol(what: string): Fault {
  return new Fault("supervisor_protocol", `The worker ${what}.`);
}
