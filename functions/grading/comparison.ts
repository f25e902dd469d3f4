import { compareJson, readExpectedJson } from "./json-comparison.ts";

/** How a program's standard output is held against the expected one. */
export type Comparison = { readonly type: "json" };

/** Whether this standard output is right. Never throws; time is linear in the output's length. */
export type OutputMatcher = (stdout: string) => boolean;

export type PreparedExpectation =
  | { readonly kind: "ok"; readonly matches: OutputMatcher }
  | { readonly kind: "unreadable"; readonly detail: string };

/**
 * Reads an expected output once, for any number of outputs to come. `unreadable` means that no output could be judged
 * by it: the task is at fault, and `detail` says how.
 */
export function prepareExpected(comparison: Comparison, expectedText: string): PreparedExpectation {
  switch (comparison.type) {
    case "json": {
      const expected = readExpectedJson(expectedText);
      if (expected.kind === "unreadable") return expected;
      return { kind: "ok", matches: (stdout) => compareJson(expected.value, stdout) };
    }
    default:
      throw new Error(`unknown comparison ${JSON.stringify(comparison.type satisfies never)}`);
  }
}
