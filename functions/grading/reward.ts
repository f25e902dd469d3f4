import type { Verdict } from "./verdict.ts";

/** How the verdicts of a task's test cases become one number. */
export interface Scoring {
  readonly rule: /** The share of the cases that passed. */
    | { readonly kind: "fraction" }
    /** 1 when every case passed, else 0. */
    | { readonly kind: "all_or_nothing" }
    /** 1 when the share that passed is at least this, else 0. */
    | { readonly kind: "threshold"; readonly threshold: number };
  /** What each case counts for, finite and not negative, at least one of them positive; null: all the same. */
  readonly weights: readonly number[] | null;
}

export interface Score {
  /** In [0, 1], always finite. */
  readonly reward: number;
  readonly passed: number;
}

const fraction: Scoring = { rule: { kind: "fraction" }, weights: null };

/** A threshold of 0.3 is reached by weights of 0.1 and 0.2, whatever doubles make of their sum. */
const ROUNDING = 1e-9;

/**
 * The reward for the verdicts of all of a task's cases; null stands for a case that was not run, since another one had
 * failed. Throws for none: no verdict is not a wrong answer.
 */
export function scoreVerdicts(verdicts: readonly (Verdict | null)[], scoring: Scoring = fraction): Score {
  if (verdicts.length === 0) throw new Error("a reward needs the verdict of at least one test case");
  const isPassed = verdicts.map((verdict) => verdict?.kind === "passed");
  const passed = isPassed.filter(Boolean).length;
  return { reward: applyRule(scoring, isPassed, passed), passed };
}

function applyRule({ rule, weights }: Scoring, isPassed: readonly boolean[], passed: number): number {
  const share = weights === null ? passed / isPassed.length : weighShare(weights, isPassed);
  switch (rule.kind) {
    case "fraction":
      return share;
    case "all_or_nothing":
      return passed === isPassed.length ? 1 : 0;
    case "threshold":
      return share >= rule.threshold * (1 - ROUNDING) ? 1 : 0;
    default:
      throw new Error(`unknown rule ${JSON.stringify(rule satisfies never)}`);
  }
}

/** Both sums run in the same order, so that the share of all is exactly 1, and one more passed case never makes it less. */
function weighShare(weights: readonly number[], isPassed: readonly boolean[]): number {
  let total = 0;
  let reached = 0;
  for (const [index, weight] of weights.entries()) {
    total += weight;
    if (isPassed[index]) reached += weight;
  }
  if (weights.length !== isPassed.length || !(total > 0)) throw new Error("weights don't fit the test cases");
  return reached / total;
}
