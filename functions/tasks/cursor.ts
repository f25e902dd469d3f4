/**
 * A value in a task's tests, and where it stands: so that whatever is wrong with it can be pointed at.
 */
import { JsonInteger, type JsonValue } from "../grading/json-value.ts";
import type { Place, TestsProblem } from "./normal-form.ts";

export interface Cursor {
  readonly value: JsonValue;
  readonly place: Place;
}

/** Problems found so far; after so many the rest need not be looked at. */
export interface TestsProblems {
  readonly items: readonly TestsProblem[];
  isFull(): boolean;
  add(place: Place, detail: string): void;
}

const MOST_PROBLEMS = 100;

export function createTestsProblems(): TestsProblems {
  const items: TestsProblem[] = [];
  return {
    items,
    isFull: () => items.length >= MOST_PROBLEMS,
    add(place, detail) {
      if (items.length < MOST_PROBLEMS) items.push({ place, detail });
    },
  };
}

/** The place of a member or an item. */
export function placeWithin({ path, inside }: Place, key: string | number): Place {
  return inside === null ? { path: [...path, key], inside: null } : { path, inside: [...inside, key] };
}

/** The place where a text that holds a value of its own begins. */
export function placeInside({ path, inside }: Place): Place {
  return { path, inside: inside ?? [] };
}

export function itemsOf(items: readonly JsonValue[], place: Place): Cursor[] {
  return items.map((value, index) => ({ value, place: placeWithin(place, index) }));
}

export function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}

/** In the reader's words. */
export function nameType(value: JsonValue): string {
  if (value === null) return "null";
  if (isList(value)) return "a list";
  if (value instanceof Map) return "an object";
  if (value instanceof JsonInteger || typeof value === "number") return "a number";
  return typeof value === "string" ? "a text" : "true or false";
}

/** Values that a task's tests may hold, counted one by one: each takes memory of its own. */
export const MOST_VALUES = 2_000_000;

/** Whether a value, as JavaScript's own JSON reader gives it, holds no more values than a task's tests may. */
export function hasFewValues(value: unknown): boolean {
  const open: object[] = isContainer(value) ? [value] : [];
  let left = MOST_VALUES;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const members: readonly unknown[] = Array.isArray(next) ? next : Object.values(next);
    left -= members.length;
    if (left < 0) return false;
    for (const member of members) if (isContainer(member)) open.push(member);
  }
  return true;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

/** A value that was read from its text, and stands where JavaScript's own JSON reader would have lost some of it. */
export class ExactJson {
  readonly value: JsonValue;

  constructor(value: JsonValue) {
    this.value = value;
  }
}

/**
 * A value as JavaScript's own JSON reader gives it, or an exact one. Whole numbers too large to be exact there become
 * NaN, which no test may hold: what they were is lost.
 */
export function fromParsedJson(value: unknown): JsonValue {
  if (typeof value === "number") {
    if (Number.isSafeInteger(value)) return new JsonInteger(String(value === 0 ? 0 : value));
    return Number.isInteger(value) ? Number.NaN : value;
  }
  if (value instanceof ExactJson) return value.value;
  if (Array.isArray(value)) return value.map(fromParsedJson);
  if (typeof value !== "object" || value === null) return value as null | boolean | string;
  const members = new Map<string, JsonValue>();
  for (const [key, member] of Object.entries(value)) members.set(key, fromParsedJson(member));
  return members;
}
