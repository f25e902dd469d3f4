import type { OutputMatcher } from "./expectation.ts";

/** What happened on one test case. */
export type Verdict =
  | { readonly kind: "passed" }
  | { readonly kind: "wrong_output" }
  | { readonly kind: "runtime_error"; readonly exitCode: number }
  | { readonly kind: "signaled"; readonly signal: string }
  | { readonly kind: "time_limit" }
  | { readonly kind: "memory_limit" }
  | { readonly kind: "output_limit" };

export type VerdictKind = Verdict["kind"];

/**
 * How a program came to its end. Ends that say nothing of the program (it got no CPU, it could not be isolated) are
 * left out on purpose: they are faults and must not get a verdict.
 */
export type ProgramEnd =
  | { readonly kind: "exited"; readonly exitCode: number }
  | Extract<Verdict, { kind: "signaled" | "time_limit" | "memory_limit" | "output_limit" }>;

/** What is judged of a case. */
export interface JudgedOutcome {
  readonly end: ProgramEnd;
  /** Its standard output, or what its function returned; null for nothing, or no valid UTF-8: nothing matches that. */
  readonly said: string | null;
}

/** The verdict on one case: how the program ended goes before what it said. */
export function judgeCase(outcome: JudgedOutcome, matches: OutputMatcher): Verdict {
  const { end, said } = outcome;
  if (end.kind !== "exited") return end;
  if (end.exitCode !== 0) return { kind: "runtime_error", exitCode: end.exitCode };
  return { kind: said !== null && matches(said) ? "passed" : "wrong_output" };
}
