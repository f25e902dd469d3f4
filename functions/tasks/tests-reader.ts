/**
 * From a dataset's tests, in whichever of the known shapes, to their one normal form.
 *
 * Nothing is guessed: what mixes shapes, contradicts itself, is empty or can't be decoded is refused, with the place of
 * each problem. A row that was read wrongly would score right programs 0, or wrong ones 1, for a whole training.
 */
import { readCaseLists } from "./case-lists.ts";
import {
  type Cursor,
  createTestsProblems,
  fromParsedJson,
  hasFewValues,
  isList,
  MOST_VALUES,
  nameType,
} from "./cursor.ts";
import type { CasePlaces, TaskTests, TestsProblem } from "./normal-form.ts";
import { createObjectReader } from "./object-shapes.ts";
import type { UnpackText } from "./packed-text.ts";
import { complain, openText, type Reading, type TestsFound } from "./reading.ts";
import { isPytestSource, readPytestSource } from "./statement-shapes.ts";

export type TestsReading =
  | {
      readonly kind: "ok";
      readonly tests: TaskTests;
      /** One per case, for kinds whose cases have an input and an output. */
      readonly casePlaces: readonly CasePlaces[];
    }
  | { readonly kind: "refused"; readonly problems: readonly TestsProblem[] };

export interface TestsReadingOptions {
  /** Where the tests stand in the task. */
  readonly path: readonly (string | number)[];
  readonly unpack: UnpackText;
  readonly maxCases: number;
}

const readObject = createObjectReader(readValue);

/**
 * Reads tests: a list, an object, or a text of either.
 *
 * @param value As JavaScript's JSON reader gives it.
 */
export function readTests(value: unknown, options: TestsReadingOptions): TestsReading {
  const { path, unpack, maxCases } = options;
  const reading: Reading = { problems: createTestsProblems(), unpack, maxCases };
  const place = { path, inside: null };
  const found = hasFewValues(value)
    ? readValue(reading, { value: fromParsedJson(value), place })
    : complain(reading, place, `may hold ${MOST_VALUES} values, and holds more`);
  const problems = reading.problems.items;
  if (found !== null && problems.length === 0) return { kind: "ok", ...found };
  if (problems.length === 0) throw new Error("tests were refused without a reason");
  return { kind: "refused", problems };
}

function readValue(reading: Reading, cursor: Cursor): TestsFound | null {
  if (typeof cursor.value === "string" && isPytestSource(cursor.value)) {
    return readPytestSource(reading, cursor.value, cursor.place);
  }
  const opened = openText(reading, cursor);
  if (opened === null) return null;
  const { value, place } = opened;
  if (isList(value)) return readCaseLists(reading, [opened], place);
  if (value instanceof Map) return readObject(reading, opened);
  return complain(
    reading,
    place,
    `must be a list, an object, or a text of one of them, not ${nameType(value)}`,
  );
}
