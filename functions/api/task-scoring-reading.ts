import type { Scoring } from "../grading/reward.ts";
import type { Path } from "./json-pointer.ts";
import type { ProblemList } from "./schema-reading.ts";

/** A task's scoring with its defaults. */
export interface ScoringJson {
  readonly type: "fraction" | "all_or_nothing" | "threshold";
  readonly threshold?: number;
  readonly weights?: readonly number[];
  readonly max_tests?: number;
  readonly fail_fast: boolean;
}

export interface ScoringRead {
  readonly scoring: Scoring;
  readonly maxTests: number | null;
  readonly failFast: boolean;
}

/**
 * What a schema can't say of a task's scoring. The result may be used only if no problem was added.
 *
 * @param raw As it was sent, so that what is there and wrong is not said to be missing.
 * @param cases How many test cases the task has; null while that isn't known.
 */
export function readScoring(
  json: ScoringJson,
  raw: unknown,
  cases: number | null,
  path: Path,
  problems: ProblemList,
): ScoringRead {
  const { type, threshold, weights, max_tests: maxTests = null, fail_fast: failFast } = json;
  const add = (field: string, detail: string) => problems.add([...path, field], detail);
  if (type === "threshold" && !isGiven(raw, "threshold")) {
    add("threshold", 'is missing; with the type "threshold" it says which share of the test cases is enough');
  }
  if (type !== "threshold" && threshold !== undefined) {
    add("threshold", 'has a meaning with the type "threshold" only');
  }
  if (failFast && type !== "all_or_nothing") {
    const detail =
      'goes with the type "all_or_nothing" only: of a program that is stopped at its first failure no share is known';
    add("fail_fast", detail);
  }
  if (weights !== undefined) {
    const detail = describeWeights(type, weights, cases);
    if (detail !== null) add("weights", detail);
  }
  return { scoring: { rule: describeRule(type, threshold), weights: weights ?? null }, maxTests, failFast };
}

function isGiven(raw: unknown, field: string): boolean {
  return typeof raw === "object" && raw !== null && Object.hasOwn(raw, field);
}

function describeRule(type: ScoringJson["type"], threshold = 1): Scoring["rule"] {
  return type === "threshold" ? { kind: type, threshold } : { kind: type };
}

function describeWeights(
  type: ScoringJson["type"],
  weights: readonly number[],
  cases: number | null,
): string | null {
  if (type === "all_or_nothing") return 'make no difference with the type "all_or_nothing"';
  if (cases !== null && weights.length !== cases) {
    return `must have one weight per test case: the task has ${cases} test cases, and there are ${weights.length} weights`;
  }
  return weights.some((weight) => weight > 0) ? null : "must have a weight above 0";
}
