/**
 * From what happened to programs to what their samples get.
 */

import { scoreVerdicts } from "../grading/reward.ts";
import { judgeCase } from "../grading/verdict.ts";
import type { CaseNotRun, CaseResult, SampleResult } from "./batch.ts";
import type { ProgramResult } from "./board.ts";
import type { Judgement } from "./chunk-run.ts";
import { Fault } from "./faults.ts";
import type { PlannedProgram } from "./plan.ts";
import type { CaseOutcome } from "./ports.ts";

/**
 * The result of each sample that a program answers for. A program that met a fault has no number.
 */
export function describeResult(program: PlannedProgram, result: ProgramResult): SampleResult {
  switch (result.kind) {
    case "graded": {
      const { caseNumbers, scoring } = program.task;
      const cases = result.cases.map((single, index) => single ?? describeNotRun(caseNumbers, index));
      const verdicts = cases.map((single) => single.verdict);
      return { kind: "graded", ...scoreVerdicts(verdicts, scoring), cases };
    }
    case "syntax_error":
      return { kind: "syntax_error", reward: 0, reason: result.detail, total: program.task.inputs.length };
    case "fault": {
      const { code, message, retryable } = result.fault;
      return { kind: "fault", reward: null, fault: { code, detail: message, retryable } };
    }
    default:
      throw new Error(`unknown result ${JSON.stringify(result satisfies never)}`);
  }
}

function describeNotRun(caseNumbers: readonly number[] | null, index: number): CaseNotRun {
  return caseNumbers === null ? { verdict: null } : { verdict: null, caseNumber: caseNumbers[index] };
}

/** Room for the outputs that one batch keeps, in characters. */
export interface OutputRoom {
  leftCharacters: number;
}

/**
 * Judges one case as it ends. Its output is compared here and then let go, unless `room` is given and has space.
 */
export function judgeOutcome(
  program: PlannedProgram,
  caseIndex: number,
  outcome: CaseOutcome,
  room: OutputRoom | null,
): Judgement {
  const { end } = outcome;
  if (end.kind === "invalid_test") {
    const number = program.task.caseNumbers?.[caseIndex] ?? caseIndex;
    const detail = `Test ${number + 1} of the task can't judge any program: ${end.detail}`;
    return { kind: "fault", fault: new Fault("invalid_task", detail) };
  }
  if (end.kind === "starved") {
    const detail = `A test case got too little CPU time on its worker to be judged: ${end.detail}`;
    return { kind: "fault", fault: new Fault("starved", detail) };
  }
  if (end.kind === "isolation_failed") {
    const detail = `The worker could not isolate a test case: ${end.detail}`;
    return { kind: "fault", fault: new Fault("isolation_failed", detail) };
  }
  const matches = program.task.matchers[caseIndex];
  if (matches === undefined) throw new Error(`case ${caseIndex} has no expected output`);
  const said = program.task.mode === "main" ? outcome.stdout : (outcome.result ?? null);
  const verdict = judgeCase({ end, said }, matches);
  const { wallMs, cpuMs, peakRssKib } = outcome;
  const { caseNumbers } = program.task;
  const number = caseNumbers === null ? {} : { caseNumber: caseNumbers[caseIndex] };
  const result: CaseResult = { verdict, ...number, wallMs, cpuMs, peakRssKib };
  return { kind: "case", result: room === null ? result : keepOutput(result, outcome, room) };
}

function keepOutput(result: CaseResult, outcome: CaseOutcome, room: OutputRoom): CaseResult {
  const characters = (outcome.stdout?.length ?? 0) + outcome.stderrTail.length;
  if (characters > room.leftCharacters) return result;
  room.leftCharacters -= characters;
  return { ...result, stdout: outcome.stdout, stderrTail: outcome.stderrTail };
}
