/**
 * A task made ready for grading: every expected output is read once, before any worker is asked for.
 */
import { createHash } from "node:crypto";
import type { Comparison } from "../grading/comparison.ts";
import type { OutputMatcher } from "../grading/expectation.ts";
import type { Scoring } from "../grading/reward.ts";
import type { StdinCase, TaskTests } from "../tasks/normal-form.ts";
import { chooseTests } from "../tasks/test-choice.ts";
import type { Limits, RunMode } from "./ports.ts";
import { prepareCases } from "./task-cases.ts";

export interface TaskDefinition {
  readonly tests: TaskTests;
  readonly comparison: Comparison;
  readonly limits: Limits;
  readonly scoring: Scoring;
  /** Run so many of the test cases, the same ones for everybody; null: all. */
  readonly maxTests: number | null;
  /** A program's further cases need not run once one has failed. For `all_or_nothing` only. */
  readonly failFast: boolean;
}

export interface PreparedTask {
  /** Equal for tasks of equal content, whatever they are called. */
  readonly contentKey: string;
  readonly mode: RunMode;
  /** Null where there is none. */
  readonly checker: string | null;
  readonly inputs: readonly string[];
  /** One per input: is this standard output, or this answer to a call, what is expected? */
  readonly matchers: readonly OutputMatcher[];
  readonly limits: Limits;
  /** Its weights are those of the cases that are run. */
  readonly scoring: Scoring;
  readonly failFast: boolean;
  /** Of each input, which of the task's test cases it is, where a choice was asked for; null: all are run, in order. */
  readonly caseNumbers: readonly number[] | null;
}

export type TaskPreparation =
  | { readonly kind: "ready"; readonly task: PreparedTask }
  /** The task as a whole can't be judged. */
  | { readonly kind: "unsupported"; readonly detail: string }
  | {
      readonly kind: "unreadable";
      /** What is wrong with the expected output of which case. */
      readonly problems: readonly { readonly caseIndex: number; readonly detail: string }[];
    };

/** Prepares tasks; one that was prepared before, under whatever name, is not prepared again. */
export type PrepareTask = (definition: TaskDefinition) => TaskPreparation;

/**
 * Makes a `PrepareTask` with a memory of its own. One batch, one preparer: the memory is never emptied.
 */
export function createTaskPreparer(): PrepareTask {
  const known = new Map<string, TaskPreparation>();
  return (definition) => {
    const testsHash = hashTests(definition.tests);
    const { comparison, limits, scoring, maxTests, failFast } = definition;
    const contentKey = hash(JSON.stringify([testsHash, comparison, limits, scoring, maxTests, failFast]));
    const earlier = known.get(contentKey);
    if (earlier !== undefined) return earlier;
    const preparation = prepareTask(definition, testsHash, contentKey);
    known.set(contentKey, preparation);
    return preparation;
  };
}

function prepareTask(definition: TaskDefinition, testsHash: string, contentKey: string): TaskPreparation {
  const { tests, comparison, limits, maxTests, failFast } = definition;
  const prepared = prepareCases(tests, comparison, limits);
  if (prepared.kind !== "ok") return prepared;
  const { mode, inputs, matchers } = prepared;
  const { rule, weights } = definition.scoring;
  const chosen = chooseTests(testsHash, matchers.length, maxTests ?? matchers.length, weights);
  const pick = <T>(items: readonly T[]): T[] => chosen.map((index) => items[index] as T);
  const task: PreparedTask = {
    contentKey,
    mode,
    checker: prepared.checker ?? null,
    inputs: pick(inputs),
    matchers: pick(matchers),
    limits,
    scoring: { rule, weights: weights === null ? null : pick(weights) },
    failFast,
    caseNumbers: maxTests === null ? null : chosen,
  };
  return { kind: "ready", task };
}

/** Of the cases as they are run, however they were written down. */
function hashTests(tests: TaskTests): string {
  if (tests.kind !== "stdin") return hash(JSON.stringify(tests));
  return hash(JSON.stringify(tests.cases.map(({ input, output }: StdinCase) => [input, output])));
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("base64");
}
