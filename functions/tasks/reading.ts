/**
 * What all readers of shapes need: texts that hold values, fields of objects, texts that must be there.
 */
import { type JsonValue, readJson } from "../grading/json-value.ts";
import {
  type Cursor,
  isList,
  MOST_VALUES,
  nameType,
  placeInside,
  placeWithin,
  type TestsProblems,
} from "./cursor.ts";
import type { CasePlaces, Place, TaskTests } from "./normal-form.ts";
import { looksPacked, type UnpackText } from "./packed-text.ts";
import { readPythonLiteral } from "./python-literal.ts";

export interface Reading {
  readonly problems: TestsProblems;
  readonly unpack: UnpackText;
  /** Test cases that a task may have. */
  readonly maxCases: number;
}

/** What a shape comes to. */
export interface TestsFound {
  readonly tests: TaskTests;
  /** For kinds whose cases have an input and an output; empty for others. */
  readonly casePlaces: readonly CasePlaces[];
}

export type Fields = ReadonlyMap<string, Cursor>;

/** A text in a text is opened, in case somebody encoded twice; but not for ever. */
const MOST_LAYERS = 3;

/** Adds a problem. For use as the last step of a reader that has found nothing. */
export function complain(reading: Reading, place: Place, detail: string): null {
  reading.problems.add(place, detail);
  return null;
}

/**
 * A value that may be there as a text: JSON, what Python's `repr` writes, or a packed text of JSON. Null, and a
 * problem, for a text that is none of these.
 */
export function openText(reading: Reading, cursor: Cursor): Cursor | null {
  let { value } = cursor;
  for (let layer = 0; typeof value === "string"; layer += 1) {
    if (layer === MOST_LAYERS) return complain(reading, cursor.place, "is a text in a text in a text");
    const opened = decode(reading, value);
    if (typeof opened === "string") return complain(reading, cursor.place, opened);
    value = opened.value;
  }
  const isOpened = typeof cursor.value === "string";
  return { value, place: isOpened ? placeInside(cursor.place) : cursor.place };
}

/** What the text holds, or what is wrong with it. */
function decode(reading: Reading, text: string): { value: JsonValue } | string {
  if (text.trim() === "") return "is empty: a task needs at least one test case";
  if (looksPacked(text)) {
    const unpacked = reading.unpack(text.trim());
    return unpacked.kind === "text" ? { value: unpacked.text } : `can't be read: ${unpacked.detail}`;
  }
  const json = readJson(text, MOST_VALUES);
  if (json.kind === "value") return json;
  const literal = readPythonLiteral(text, MOST_VALUES);
  if (literal.kind === "value") return literal;
  return `is neither JSON (${json.detail}) nor what Python's repr writes (${literal.detail})`;
}

/**
 * The fields of an object, those that are null left out: tables fill up with nulls what a row doesn't have. Unknown
 * fields are problems, since they could mean anything.
 */
export function readFields(
  reading: Reading,
  object: ReadonlyMap<string, JsonValue>,
  place: Place,
  known: readonly string[],
): Fields {
  const fields = new Map<string, Cursor>();
  for (const [name, value] of object) {
    if (reading.problems.isFull()) break;
    const isKnown = known.includes(name);
    if (isKnown && value !== null) fields.set(name, { value, place: placeWithin(place, name) });
    if (isKnown) continue;
    const list = known.map((field) => `'${field}'`).join(", ");
    reading.problems.add(
      placeWithin(place, name),
      `is a field that is not known in this shape; known are ${list}`,
    );
  }
  return fields;
}

/** The texts of a list, or one text as a list of one. */
export function readTexts(reading: Reading, cursor: Cursor): string[] | null {
  if (typeof cursor.value === "string") return [cursor.value];
  if (!isList(cursor.value))
    return complain(reading, cursor.place, `must be a list of texts, not ${nameType(cursor.value)}`);
  const texts: string[] = [];
  for (const [index, item] of cursor.value.entries()) {
    if (typeof item !== "string") {
      const detail = `must be a text, not ${nameType(item)}`;
      return complain(reading, placeWithin(cursor.place, index), detail);
    }
    texts.push(item);
  }
  return texts;
}

/** A text; a list of texts are its lines. */
export function readLines(reading: Reading, cursor: Cursor): string | null {
  if (typeof cursor.value !== "string" && !isList(cursor.value)) {
    return complain(
      reading,
      cursor.place,
      `must be a text, or a list of lines, not ${nameType(cursor.value)}`,
    );
  }
  return readTexts(reading, cursor)?.join("\n") ?? null;
}

/** A text; empty where there is none. */
export function readOptionalText(reading: Reading, cursor: Cursor | undefined): string {
  return cursor === undefined ? "" : (readLines(reading, cursor) ?? "");
}

/** Whether so many test cases may be; a problem if not. */
export function checkCount(reading: Reading, count: number, place: Place): boolean {
  if (count >= 1 && count <= reading.maxCases) return true;
  const detail =
    count === 0 ? "holds no test case" : `may have up to ${reading.maxCases} test cases, and has ${count}`;
  complain(reading, place, detail);
  return false;
}
