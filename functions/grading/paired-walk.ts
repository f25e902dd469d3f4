import type { JsonInteger, JsonValue } from "./json-value.ts";

export type Scalar = null | boolean | string | number | JsonInteger;

/** What is found where a value of a kind is expected; null where there is none of that kind. */
export interface PairedReading {
  readonly readItems: (found: JsonValue) => readonly JsonValue[] | null;
  readonly readMembers: (found: JsonValue) => ReadonlyMap<string, JsonValue> | null;
  readonly matchesScalar: (wanted: Scalar, found: JsonValue) => boolean;
}

/** Whether two values have the same shape, and match wherever the expected one is no list and no object. Uses no stack. */
export function matchInPairs(expected: JsonValue, actual: JsonValue, reading: PairedReading): boolean {
  const pairs: [JsonValue, JsonValue][] = [[expected, actual]];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [wanted, found] = pair;
    if (Array.isArray(wanted)) {
      const items = reading.readItems(found);
      if (items?.length !== wanted.length) return false;
      for (const [index, item] of wanted.entries()) pairs.push([item, items[index] as JsonValue]);
    } else if (wanted instanceof Map) {
      const members = reading.readMembers(found);
      if (members?.size !== wanted.size) return false;
      for (const [key, member] of wanted) {
        const other = members.get(key);
        if (other === undefined) return false;
        pairs.push([member, other]);
      }
    } else if (!reading.matchesScalar(wanted as Scalar, found)) {
      return false;
    }
  }
  return true;
}
