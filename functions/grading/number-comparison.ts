import { splitTokens } from "./blanks.ts";
import type { PreparedExpectation } from "./expectation.ts";
import { readNumberLiteral } from "./number-literal.ts";
import { isWithin, type Tolerance } from "./tolerance.ts";

/** What Python's `float` reads as no finite number, however it is written. */
const NOT_FINITE = /^[+-]?(nan|inf|infinity)$/i;

/**
 * Reads the words of an expected output.
 *
 * A word that is an integer is matched by that integer only, in whatever spelling (`3`, `03`, `3.0`), and exactly at
 * any length. A float is matched by every number within the tolerance. Any other word is matched by itself. NaN and
 * infinities match nothing, so that expecting one is an error.
 */
export function prepareNumbers(tolerance: Tolerance, expectedText: string): PreparedExpectation {
  const impossible = splitTokens(expectedText).findIndex((token) => !canBeMatched(token));
  if (impossible >= 0) {
    const detail = `its word ${impossible + 1} is NaN, an infinity or a number as large, which no output can match`;
    return { kind: "unreadable", detail };
  }
  // The words are not kept: those of a large task would take many times its memory.
  return {
    kind: "ok",
    matches(stdout) {
      const wanted = splitTokens(expectedText);
      const found = splitTokens(stdout);
      if (found.length !== wanted.length) return false;
      return wanted.every((token, index) => matchesToken(token, found[index] ?? "", tolerance));
    },
  };
}

function canBeMatched(expected: string): boolean {
  const number = readNumberLiteral(expected);
  if (number === null) return !NOT_FINITE.test(expected);
  return number.isInteger || Number.isFinite(number.value);
}

function matchesToken(expected: string, found: string, tolerance: Tolerance): boolean {
  if (found === expected) return true;
  const wanted = readNumberLiteral(expected);
  const actual = wanted === null ? null : readNumberLiteral(found);
  if (wanted === null || actual === null) return false;
  return wanted.isInteger ? actual.exact === wanted.exact : isWithin(actual.value, wanted.value, tolerance);
}
