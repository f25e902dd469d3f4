/**
 * A task made ready for grading: every expected output is read once, before any worker is asked for.
 */
import { createHash } from "node:crypto";
import { type Comparison, type OutputMatcher, prepareExpected } from "../grading/comparison.ts";
import type { Limits } from "./ports.ts";

export interface TaskDefinition {
  readonly testCases: readonly { readonly input: string; readonly output: string }[];
  readonly comparison: Comparison;
  readonly limits: Limits;
}

export interface PreparedTask {
  /** Equal for tasks of equal content, whatever they are called. */
  readonly contentKey: string;
  readonly inputs: readonly string[];
  /** One per input: does this standard output match what is expected? */
  readonly matchers: readonly OutputMatcher[];
  readonly limits: Limits;
}

export type TaskPreparation =
  | { readonly kind: "ready"; readonly task: PreparedTask }
  | {
      readonly kind: "unreadable";
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
    const contentKey = hashContent(definition);
    const earlier = known.get(contentKey);
    if (earlier !== undefined) return earlier;
    const preparation = prepareTask(definition, contentKey);
    known.set(contentKey, preparation);
    return preparation;
  };
}

function prepareTask(definition: TaskDefinition, contentKey: string): TaskPreparation {
  const matchers: OutputMatcher[] = [];
  const problems: { caseIndex: number; detail: string }[] = [];
  for (const [caseIndex, testCase] of definition.testCases.entries()) {
    const expected = prepareExpected(definition.comparison, testCase.output);
    if (expected.kind === "ok") matchers.push(expected.matches);
    else problems.push({ caseIndex, detail: expected.detail });
  }
  if (problems.length > 0) return { kind: "unreadable", problems };
  const inputs = definition.testCases.map((testCase) => testCase.input);
  return { kind: "ready", task: { contentKey, inputs, matchers, limits: definition.limits } };
}

function hashContent(definition: TaskDefinition): string {
  const { timeMs, memoryMib, outputBytes } = definition.limits;
  const cases = definition.testCases.map((testCase) => [testCase.input, testCase.output]);
  const content = JSON.stringify([definition.comparison, timeMs, memoryMib, outputBytes, cases]);
  return createHash("sha256").update(content).digest("base64");
}
