import { splitTokens } from "./blanks.ts";
import type { PreparedExpectation } from "./expectation.ts";
import { readNumberLiteral } from "./number-literal.ts";
import { isWithin, type Tolerance } from "./tolerance.ts";

/** One expected word: whether another one will do for it. */
type TokenMatcher = (token: string) => boolean;

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
  const matchers: TokenMatcher[] = [];
  for (const token of splitTokens(expectedText)) {
    const matcher = prepareToken(token, tolerance);
    if (matcher === null) {
      const word = matchers.length + 1;
      const detail = `its word ${word} is NaN, an infinity or a number as large, which no output can match`;
      return { kind: "unreadable", detail };
    }
    matchers.push(matcher);
  }
  return {
    kind: "ok",
    matches(stdout) {
      const tokens = splitTokens(stdout);
      return tokens.length === matchers.length && tokens.every((token, index) => matchers[index]?.(token));
    },
  };
}

/** Null for a word that nothing can match. */
function prepareToken(expected: string, tolerance: Tolerance): TokenMatcher | null {
  const number = readNumberLiteral(expected);
  if (number === null) return NOT_FINITE.test(expected) ? null : (token) => token === expected;
  if (number.isInteger) {
    return (token) => token === expected || readNumberLiteral(token)?.exact === number.exact;
  }
  if (!Number.isFinite(number.value)) return null;
  return (token) => token === expected || isWithin(readValue(token), number.value, tolerance);
}

function readValue(token: string): number {
  return readNumberLiteral(token)?.value ?? Number.NaN;
}
