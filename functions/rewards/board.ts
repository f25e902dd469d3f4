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
 *   suspects; yet a case goes back for free eight times at most. So do suspects of a loss that turns out to have been
 *   the platform's, or within a moment of the one before, and whatever ran when a worker was lost to a known cause.
 * - A worker that is lost before anything started has cost nobody a retry. What it was given is handed out again as it
 *   is. Lost a second time, it goes to two workers in halves, so that whatever it is that ends workers before their first
 *   line is alone in the end; then a third loss is its fate.
 * - Once a case of a program that fails fast has failed, its other cases are not waited for: whatever becomes of them,
 *   the reward is known. Such a program's cases are handed out in stages, so that most of them need not run at all.
 * - A program that is a suspect a second time while it runs alone is what ends workers: its fault isn't worth a retry.
 */
import type { CaseResult } from "./batch.ts";
import {
  chargeFreeReturn,
  clearSuspect,
  countLosses,
  createFaultRecord,
  describePoison,
  describeUnstarted,
  type FaultRecord,
  isRetried,
  noteSuspicion,
} from "./fault-record.ts";
import { Fault } from "./faults.ts";
import type { Loss } from "./losses.ts";
import type { PlannedProgram } from "./plan.ts";
import { firstStage, nextStage } from "./stages.ts";
import { type Assignment, countCases, createWorkQueue, type Portion } from "./work-queue.ts";

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
  /** No worker takes the chunk's request, it is too large: its `rest` goes back, for free, to be sent in smaller ones. */
  splitChunk(assignment: Assignment, rest: readonly Portion[], why: "too_large" | "kept_off"): void;
  /** The worker gave up cases of one chunk. */
  giveBack(program: PlannedProgram, cases: GivenBack): void;
  /** The worker was lost while none of these cases had started; `counts` if it is known to have been alive before. */
  giveBackUnstarted(assignment: Assignment, fault: Fault, counts: boolean): void;
  /** Whether a worker was lost while it ran the program. */
  hasLostWorker(program: PlannedProgram): boolean;
}

/** Cases of one program that a chunk left without an end, and why. */
export interface GivenBack {
  readonly fault: Fault;
  /** Cases that had started, where that makes them suspects. They run alone. */
  readonly suspects: readonly number[];
  /** Cases that the fault touched. They use up their retry. */
  readonly touched: readonly number[];
  /** Cases that the fault had nothing to do with. */
  readonly innocent: readonly number[];
  /** The loss of a worker that made suspects of them; null where it was something else. */
  readonly loss: Loss | null;
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

/** Workers in turn that are lost with the same cases, unstarted, before those are tried in two halves. */
const LOSSES_PER_SET = 2;
/** And with a single case, before that is its program's fate. */
const LOSSES_PER_CASE = 3;

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
  const openOf = (portions: readonly Portion[]): Portion[] =>
    portions.flatMap(({ program, caseIndexes }) => {
      const { isSettled, cases } = stateOf(program);
      const open = isSettled ? [] : caseIndexes.filter((caseIndex) => cases[caseIndex] === undefined);
      return open.length > 0 ? [{ program, caseIndexes: open }] : [];
    });

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
      if (clearSuspect(state.faults, caseIndex)) queue.letGo(program);
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
    splitChunk({ portions, bytes }, rest, why) {
      const open = openOf(rest);
      const [first] = open;
      if (first !== undefined && countCases(portions) === 1)
        return fail(first.program, describeTooLarge(bytes, why));
      queue.limitBytes(Math.floor(bytes / 2)); // so that it ends, with single cases at the latest
      for (const { program, caseIndexes } of open)
        for (const caseIndex of caseIndexes) queue.putBack(program, caseIndex, false);
    },
    giveBack(program, cases) {
      const state = stateOf(program);
      if (state.isSettled) return;
      state.faults ??= createFaultRecord();
      const { faults } = state;
      const { fault, loss } = cases;
      const isOpen = (caseIndex: number) => state.cases[caseIndex] === undefined;
      const [suspects, touched, innocent] = [cases.suspects, cases.touched, cases.innocent].map((indexes) =>
        indexes.filter(isOpen),
      ) as [number[], number[], number[]];
      const retried = [...suspects, ...touched].filter((caseIndex) => isRetried(faults, caseIndex));
      const isHeld = loss === null || suspects.length === 0 || noteSuspicion(faults, loss, suspects);
      const free = isHeld ? innocent : [...suspects, ...innocent];
      const charged = isHeld ? [...suspects, ...touched] : touched;
      const isFatal = retried.some((caseIndex) => charged.includes(caseIndex));
      if (loss !== null && isHeld && cases.whileAlone && countLosses(faults) > 1)
        return fail(program, describePoison(fault));
      if (isFatal || !free.every((caseIndex) => chargeFreeReturn(faults, caseIndex)))
        return fail(program, fault);
      retries += 1;
      if (suspects.length > 0) queue.hold(program);
      for (const caseIndex of suspects) {
        if (loss === null) faults.retriedCases.add(caseIndex);
        faults.suspects.add(caseIndex);
        queue.putBack(program, caseIndex, true);
      }
      for (const caseIndex of touched) faults.retriedCases.add(caseIndex);
      for (const caseIndex of [...touched, ...innocent]) {
        const isSuspect = faults.suspects.has(caseIndex); // it still is, and all else of its program waits for it
        queue.putBack(program, caseIndex, isSuspect || fault.code === "starved");
      }
    },
    giveBackUnstarted(assignment, fault, counts) {
      const portions = openOf(assignment.portions);
      const [first] = portions;
      if (first === undefined) return;
      retries += portions.length;
      const unstartedLosses = assignment.unstartedLosses + (counts ? 1 : 0);
      const isSingle = countCases(portions) === 1;
      const left = { ...assignment, portions, unstartedLosses };
      if (isSingle && unstartedLosses >= LOSSES_PER_CASE) {
        const others = programsRun - (stateOf(first.program).started ? 1 : 0);
        return fail(first.program, describeUnstarted(fault, unstartedLosses, others > 0));
      }
      if (isSingle || unstartedLosses < LOSSES_PER_SET) {
        return queue.putBackAsOne(left);
      }
      for (const half of halve(portions)) queue.putBackAsOne({ ...left, portions: half, unstartedLosses: 0 });
    },
    hasLostWorker: (program) => (stateOf(program).faults?.suspicions.length ?? 0) > 0,
  };
}

function createState(stage: number): ProgramState {
  return { cases: [], endedCases: 0, stage, started: false, isSettled: false, faults: null };
}

/** Only the worker itself is believed that no worker will ever take it. */
function describeTooLarge(bytes: number, why: "too_large" | "kept_off"): Fault {
  const what = `The program and one of its test cases are a request of ${bytes} bytes`;
  if (why === "too_large") return new Fault("invalid_task", `${what}, which is more than a worker takes.`);
  return new Fault("sandbox_unavailable", `${what}, and a proxy before the worker let it not through (413).`);
}

/** Two sets of about as many programs, or of cases when there is one program. */
function halve(portions: readonly Portion[]): (readonly Portion[])[] {
  const [first] = portions;
  if (first === undefined || portions.length > 1) {
    const middle = Math.ceil(portions.length / 2);
    return [portions.slice(0, middle), portions.slice(middle)];
  }
  const { program, caseIndexes } = first;
  const middle = Math.ceil(caseIndexes.length / 2);
  return [caseIndexes.slice(0, middle), caseIndexes.slice(middle)].map((half) => [
    { program, caseIndexes: half },
  ]);
}
