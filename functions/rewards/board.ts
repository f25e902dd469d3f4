/**
 * The state of every program of a batch while workers run them.
 *
 * Theory of operation
 * - A case has one end. What ended is never run again and never counted twice, whatever happens to its worker.
 * - A case has one retry. The first fault that touches it sends it back to the queue, the second one is the fault of
 *   its program; a fault of any case is the fate of the whole program, since part of a reward is not a reward.
 * - A worker that is lost leaves suspects: the cases that had started and not ended. Each runs again alone. Cases of
 *   the same chunk that had not started are innocent: they go back for free, since the suspects, and whatever else waits
 *   of their programs, are out of their way until the suspects are cleared. That ends, because each such loss finds new
 *   suspects; yet a case goes back for free eight times at most.
 * - Once a case of a program that fails fast has failed, its other cases are not waited for: whatever becomes of them,
 *   the reward is known. Such a program's cases are handed out in stages, so that most of them need not run at all.
 * - A program that is a suspect a second time while it runs alone is what ends workers: its fault isn't worth a retry.
 */
import type { CaseResult } from "./batch.ts";
import { Fault } from "./faults.ts";
import type { PlannedProgram } from "./plan.ts";
import { firstStage, nextStage } from "./stages.ts";
import { type Assignment, createWorkQueue } from "./work-queue.ts";

/** What came of a program; the same for all samples that it answers for. */
export type ProgramResult =
  /** A case is null when it did not have to run. */
  | { readonly kind: "graded"; readonly cases: readonly (CaseResult | null)[] }
  | { readonly kind: "syntax_error"; readonly detail: string }
  | { readonly kind: "fault"; readonly fault: Fault };

export interface Board {
  /** Programs whose result is not known yet. */
  openPrograms(): number;
  /** Cases that have no end yet, of programs whose result is open. */
  openCases(): number;
  queuedCases(): number;
  queuedAlone(): number;
  /** Programs that a worker started or judged. */
  programsRun(): number;
  /** Programs sent to a worker again because of a fault. */
  retries(): number;
  take(workers: number): Assignment | null;
  isOpen(program: PlannedProgram): boolean;
  noteStarted(program: PlannedProgram): void;
  endCase(program: PlannedProgram, caseIndex: number, result: CaseResult): void;
  /** False when a case of the program has already run to an end, so that the worker contradicts another one. */
  endAsSyntaxError(program: PlannedProgram, detail: string): boolean;
  fail(program: PlannedProgram, fault: Fault): void;
  failAll(fault: Fault): void;
  /** No worker takes the chunk's request, it is too large: its cases go back, for free, to be sent in smaller ones. */
  splitChunk(assignment: Assignment): void;
  /** The worker gave up cases of one chunk. */
  giveBack(program: PlannedProgram, cases: GivenBack): void;
}

/** Cases of one program that a chunk left without an end, and why. */
export interface GivenBack {
  readonly fault: Fault;
  /** Cases that had started, where that makes them suspects. They run alone. */
  readonly suspects: readonly number[];
  /** Cases that the fault touched. They use up their retry. */
  readonly touched: readonly number[];
  /** Cases that never started, in a chunk that has suspects. */
  readonly innocent: readonly number[];
  /** Whether the chunk held one case only, that had been put back before. */
  readonly whileAlone: boolean;
}

interface ProgramState {
  /** Let go of once the program's result was told. */
  cases: (CaseResult | undefined)[];
  endedCases: number;
  /** Cases that may be handed out by now. */
  stage: number;
  started: boolean;
  isSettled: boolean;
  /** Null for the many programs that never met a fault. */
  faults: FaultRecord | null;
}

interface FaultRecord {
  lostWorkers: number;
  readonly suspects: Set<number>;
  readonly retriedCases: Set<number>;
  readonly freeReturns: Map<number, number>;
}

const FREE_RETURNS = 8;

/**
 * Makes the board of a batch. `onResult` is called once per program, when its result is known.
 */
export function createBoard(
  programs: readonly PlannedProgram[],
  onResult: (program: PlannedProgram, result: ProgramResult) => void,
): Board {
  const queue = createWorkQueue(programs);
  const states = new Map<PlannedProgram, ProgramState>();
  for (const program of programs) states.set(program, createState(firstStage(program.task)));
  let openPrograms = programs.length;
  let openCases = programs.reduce((sum, program) => sum + program.task.inputs.length, 0);
  let programsRun = 0;
  let retries = 0;

  const stateOf = (program: PlannedProgram) => states.get(program) as ProgramState;
  const settle = (program: PlannedProgram, result: ProgramResult) => {
    const state = stateOf(program);
    if (state.isSettled) return;
    state.isSettled = true;
    state.cases = [];
    openPrograms -= 1;
    openCases -= program.task.inputs.length - state.endedCases;
    queue.drop(program);
    onResult(program, result);
  };
  const markStarted = (state: ProgramState) => {
    if (!state.started) programsRun += 1;
    state.started = true;
  };
  const fail = (program: PlannedProgram, fault: Fault) => settle(program, { kind: "fault", fault });

  return {
    openPrograms: () => openPrograms,
    openCases: () => openCases,
    queuedCases: () => queue.size(),
    queuedAlone: () => queue.sizeAlone(),
    programsRun: () => programsRun,
    retries: () => retries,
    take: (workers) => queue.take(workers),
    isOpen: (program) => !stateOf(program).isSettled,
    noteStarted: (program) => markStarted(stateOf(program)),
    endCase(program, caseIndex, result) {
      const state = stateOf(program);
      if (state.isSettled || state.cases[caseIndex] !== undefined) return;
      state.cases[caseIndex] = result;
      state.endedCases += 1;
      openCases -= 1;
      if (clearSuspect(state, caseIndex)) queue.letGo(program);
      const total = program.task.inputs.length;
      if (state.endedCases === total || (program.task.failFast && result.verdict.kind !== "passed")) {
        const cases = Array.from({ length: total }, (_, index) => state.cases[index] ?? null);
        settle(program, { kind: "graded", cases });
      } else if (state.endedCases === state.stage) {
        state.stage = nextStage(program.task, state.stage);
        queue.allow(program, state.stage);
      }
    },
    endAsSyntaxError(program, detail) {
      const state = stateOf(program);
      if (state.isSettled) return true;
      if (state.endedCases > 0) return false;
      markStarted(state);
      settle(program, { kind: "syntax_error", detail });
      return true;
    },
    fail,
    failAll(fault) {
      for (const program of programs) fail(program, fault);
    },
    splitChunk({ portions, bytes }) {
      const [first] = portions;
      const isSingle = portions.length === 1 && first?.caseIndexes.length === 1;
      if (isSingle) return fail(first.program, describeTooLarge(bytes));
      queue.limitBytes(Math.floor(bytes / 2)); // so that it ends, with single cases at the latest
      for (const { program, caseIndexes } of portions) {
        if (stateOf(program).isSettled) continue;
        for (const caseIndex of caseIndexes) queue.putBack(program, caseIndex, false);
      }
    },
    giveBack(program, cases) {
      const state = stateOf(program);
      if (state.isSettled) return;
      state.faults ??= createFaultRecord();
      const { faults } = state;
      const { fault, whileAlone, suspects } = cases;
      const lostByIt = suspects.length > 0 && fault.code === "worker_lost";
      if (lostByIt) faults.lostWorkers += 1;
      if (lostByIt && whileAlone && faults.lostWorkers > 1) return fail(program, describePoison(fault));
      for (const caseIndex of [...suspects, ...cases.touched]) {
        if (faults.retriedCases.has(caseIndex)) return fail(program, fault);
      }
      retries += 1;
      if (suspects.length > 0) queue.hold(program);
      for (const caseIndex of suspects) {
        faults.retriedCases.add(caseIndex);
        faults.suspects.add(caseIndex);
        queue.putBack(program, caseIndex, true);
      }
      for (const caseIndex of cases.touched) faults.retriedCases.add(caseIndex);
      for (const caseIndex of cases.touched) queue.putBack(program, caseIndex, fault.code === "starved");
      for (const caseIndex of cases.innocent) {
        if (!chargeFreeReturn(faults, caseIndex)) return fail(program, fault);
        queue.putBack(program, caseIndex, false);
      }
    },
  };
}

function createState(stage: number): ProgramState {
  return { cases: [], endedCases: 0, stage, started: false, isSettled: false, faults: null };
}

function createFaultRecord(): FaultRecord {
  return { lostWorkers: 0, suspects: new Set(), retriedCases: new Set(), freeReturns: new Map() };
}

/** True when the case was the last suspect of its program. */
function clearSuspect({ faults }: ProgramState, caseIndex: number): boolean {
  return faults?.suspects.delete(caseIndex) === true && faults.suspects.size === 0;
}

/** Counts a return that costs no retry; once they are used up it costs the retry; false when that is gone too. */
function chargeFreeReturn(faults: FaultRecord, caseIndex: number): boolean {
  const soFar = faults.freeReturns.get(caseIndex) ?? 0;
  if (soFar < FREE_RETURNS) {
    faults.freeReturns.set(caseIndex, soFar + 1);
    return true;
  }
  if (faults.retriedCases.has(caseIndex)) return false;
  faults.retriedCases.add(caseIndex);
  return true;
}

function describeTooLarge(bytes: number): Fault {
  const detail =
    `The program and one of its test cases are a request of ${bytes} bytes, ` +
    "which is more than a worker, or a proxy before it, takes.";
  return new Fault("invalid_task", detail);
}

function describePoison(fault: Fault): Fault {
  const detail =
    "A second worker was lost while it ran nothing but this program, so the program may be what ends workers. " +
    "Sending it again is not worth it.";
  return new Fault("worker_lost", detail, { retryable: false, cause: fault });
}
