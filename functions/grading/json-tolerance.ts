import { JsonInteger, type JsonValue } from "./json-value.ts";
import { matchInPairs, type Scalar } from "./paired-walk.ts";
import { isWithin, type Tolerance } from "./tolerance.ts";

/**
 * Whether two JSON values are equal when floats need only be close. Everything else is exact, as without a tolerance:
 * integers at any length, texts, keys, lengths, and the types, so that `1` is not `1.0`. The expected value holds no NaN
 * and no infinity. Uses no stack.
 */
export function compareJsonWithin(expected: JsonValue, actual: JsonValue, tolerance: Tolerance): boolean {
  return matchInPairs(expected, actual, {
    readItems: (found) => (Array.isArray(found) ? found : null),
    readMembers: (found) => (found instanceof Map ? found : null),
    matchesScalar: (wanted, found) => matchesScalar(wanted, found, tolerance),
  });
}

function matchesScalar(expected: Scalar, actual: JsonValue, tolerance: Tolerance): boolean {
  if (expected instanceof JsonInteger) {
    return actual instanceof JsonInteger && actual.digits === expected.digits;
  }
  if (typeof expected === "number") {
    return typeof actual === "number" && isWithin(actual, expected, tolerance);
  }
  return actual === expected;
}
