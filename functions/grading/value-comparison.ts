/**
 * Whether what a function returned is what it should return: a value of Python's against a JSON value.
 */
import { JsonInteger, type JsonValue, readJson } from "./json-value.ts";
import { matchInPairs, type Scalar } from "./paired-walk.ts";
import { isWithin, type Tolerance } from "./tolerance.ts";

/**
 * Compares an answer of `functions/supervisor/calls.py`, in which types that JSON lacks have their name, with the
 * expected value. Numbers are equal as in Python, so that `1` is `1.0`, and a float may be off by the tolerance; `True`
 * is no number. A tuple is a list, and an integer key of a dict is its text, since JSON has only those. Nothing else is
 * anything else. The expected value holds no NaN and no infinity. Never throws; uses no stack.
 *
 * @param answer Written in a process that belongs to the program: any text at all.
 */
export function compareReturned(
  expected: JsonValue,
  answer: string,
  tolerance: Tolerance | undefined,
): boolean {
  const reading = readJson(answer);
  if (reading.kind === "invalid") return false;
  const returned = memberOf(reading.value, "value");
  if (returned === undefined) return false;
  return matchInPairs(expected, returned, {
    readItems: (found) => {
      const items = memberOf(found, "tuple") ?? found;
      return Array.isArray(items) ? items : null;
    },
    readMembers: readDict,
    matchesScalar: (wanted, found) => matchesScalar(wanted, found, tolerance),
  });
}

function matchesScalar(expected: Scalar, returned: JsonValue, tolerance: Tolerance | undefined): boolean {
  if (expected instanceof JsonInteger) {
    if (returned instanceof JsonInteger) return returned.digits === expected.digits;
    return typeof returned === "number" && spellInteger(returned) === expected.digits;
  }
  if (typeof expected !== "number") return returned === expected;
  if (typeof returned === "number") return isWithin(returned, expected, tolerance ?? exact);
  if (!(returned instanceof JsonInteger)) return false;
  if (spellInteger(expected) === returned.digits) return true;
  return tolerance !== undefined && isWithin(Number(returned.digits), expected, tolerance);
}

const exact: Tolerance = { absolute: 0, relative: 0 };

/** All digits of a float that is a whole number; null for another. */
function spellInteger(value: number): string | null {
  return Number.isInteger(value) ? BigInt(value).toString() : null;
}

/** What an object of this one member holds. */
function memberOf(value: JsonValue, name: string): JsonValue | undefined {
  return value instanceof Map && value.size === 1 ? value.get(name) : undefined;
}

/** Null for what is no dict with texts and integers as keys, or has two that are the same as text. */
function readDict(value: JsonValue): Map<string, JsonValue> | null {
  const entries = memberOf(value, "dict");
  if (!Array.isArray(entries)) return null;
  const members = new Map<string, JsonValue>();
  for (const entry of entries) {
    if (!Array.isArray(entry) || entry.length !== 2) return null;
    const [key, member] = entry;
    const name = key instanceof JsonInteger ? key.digits : key;
    if (typeof name !== "string" || members.has(name)) return null;
    members.set(name, member);
  }
  return members;
}
