import { JsonInteger, type JsonValue } from "./json-value.ts";
import { isWithin, type Tolerance } from "./tolerance.ts";

/**
 * Whether two JSON values are equal when floats need only be close. Everything else is exact, as without a tolerance:
 * integers at any length, texts, keys, lengths, and the types, so that `1` is not `1.0`. The expected value holds no NaN
 * and no infinity. Uses no stack.
 */
export function compareJsonWithin(expected: JsonValue, actual: JsonValue, tolerance: Tolerance): boolean {
  const pairs: [JsonValue, JsonValue][] = [[expected, actual]];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [wanted, found] = pair;
    if (Array.isArray(wanted)) {
      if (!Array.isArray(found) || found.length !== wanted.length) return false;
      for (const [index, item] of wanted.entries()) pairs.push([item, found[index]]);
    } else if (wanted instanceof Map) {
      if (!(found instanceof Map) || found.size !== wanted.size) return false;
      for (const [key, member] of wanted) {
        const other = found.get(key);
        if (other === undefined) return false;
        pairs.push([member, other]);
      }
    } else if (!matchesScalar(wanted as Scalar, found, tolerance)) {
      return false;
    }
  }
  return true;
}

type Scalar = null | boolean | string | number | JsonInteger;

function matchesScalar(expected: Scalar, actual: JsonValue, tolerance: Tolerance): boolean {
  if (expected instanceof JsonInteger) {
    return actual instanceof JsonInteger && actual.digits === expected.digits;
  }
  if (typeof expected === "number") {
    return typeof actual === "number" && isWithin(actual, expected, tolerance);
  }
  return actual === expected;
}
