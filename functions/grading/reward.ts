import type { Verdict } from "./verdict.ts";

export interface Score {
  /** Share of the cases that passed, in [0, 1]. */
  readonly reward: number;
  readonly passed: number;
}

/** The reward for the verdicts of all of a task's cases. Throws for none: no verdict is not a wrong answer. */
export function scoreVerdicts(verdicts: readonly Verdict[]): Score {
  if (verdicts.length === 0) throw new Error("a reward needs the verdict of at least one test case");
  const passed = verdicts.filter((verdict) => verdict.kind === "passed").length;
  return { reward: passed / verdicts.length, passed };
}
