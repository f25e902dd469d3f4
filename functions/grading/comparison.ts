/**
 * How a program's standard output is held against the expected one. Everything here is pure, and linear in the length
 * of both texts; no output can make it throw. Of an expected output hardly more than its text is kept: the words or
 * values of a large task would take many times its memory, and are cheap to find again.
 */
import { splitLines, splitTokens } from "./blanks.ts";
import type { OutputMatcher, PreparedExpectation } from "./expectation.ts";
import { compareJson, readExpectedJson } from "./json-comparison.ts";
import { compareJsonWithin } from "./json-tolerance.ts";
import { readJson } from "./json-value.ts";
import { areSameItems } from "./multiset.ts";
import { prepareNumbers } from "./number-comparison.ts";
import { normaliseText } from "./text-comparison.ts";
import type { Tolerance } from "./tolerance.ts";

export type Comparison =
  /** One JSON value; with a tolerance, floats need only be close. */
  | { readonly type: "json"; readonly tolerance?: Tolerance | undefined }
  /** The same text; unless `strict`, line ends, blanks at line ends and blank lines at the end are free. */
  | { readonly type: "text"; readonly strict: boolean }
  /** The same words in the same order. */
  | { readonly type: "tokens" }
  /** As `tokens`, with numbers compared as numbers: integers exactly, floats within the tolerance. */
  | { readonly type: "numbers"; readonly tolerance: Tolerance }
  /** The same lines in any order. */
  | { readonly type: "lines_unordered" }
  /** The same words in any order. */
  | { readonly type: "tokens_unordered" };

/**
 * Reads an expected output once, for any number of outputs to come. `unreadable` means that no output could be judged
 * by it: the task is at fault, and `detail` says how.
 */
export function prepareExpected(comparison: Comparison, expectedText: string): PreparedExpectation {
  switch (comparison.type) {
    case "json":
      return prepareJson(comparison.tolerance, expectedText);
    case "text":
      return comparison.strict
        ? ok((stdout) => stdout === expectedText)
        : prepareEqual(expectedText, normaliseText);
    case "tokens":
      return prepareEqual(expectedText, (text) => splitTokens(text).join(" "));
    case "numbers":
      return prepareNumbers(comparison.tolerance, expectedText);
    case "lines_unordered":
      return ok((stdout) => areSameItems(splitFilledLines(expectedText), splitFilledLines(stdout)));
    case "tokens_unordered":
      return ok((stdout) => areSameItems(splitTokens(expectedText), splitTokens(stdout)));
    default:
      throw new Error(`unknown comparison ${JSON.stringify(comparison satisfies never)}`);
  }
}

function prepareJson(tolerance: Tolerance | undefined, expectedText: string): PreparedExpectation {
  const expected = readExpectedJson(expectedText);
  if (expected.kind === "unreadable") return expected;
  if (tolerance === undefined) return ok((stdout) => compareJson(expected.value, stdout));
  return ok((stdout) => {
    const wanted = readJson(expectedText);
    const found = readJson(stdout);
    if (wanted.kind === "invalid" || found.kind === "invalid") return false;
    return compareJsonWithin(wanted.value, found.value, tolerance);
  });
}

/** Equal once both are in a form in which only what counts is left. */
function prepareEqual(expectedText: string, normalise: (text: string) => string): PreparedExpectation {
  const expected = normalise(expectedText);
  return ok((stdout) => normalise(stdout) === expected);
}

function splitFilledLines(text: string): string[] {
  return splitLines(text).filter((line) => line !== "");
}

function ok(matches: OutputMatcher): PreparedExpectation {
  return { kind: "ok", matches };
}
