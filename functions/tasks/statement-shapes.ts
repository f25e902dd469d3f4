/**
 * Shapes that are Python source: assert statements, a `check` function, a pytest file.
 */
import { type Cursor, placeWithin } from "./cursor.ts";
import type { AssertCase, Place, TaskTests } from "./normal-form.ts";
import {
  checkCount,
  complain,
  type Fields,
  type Reading,
  readOptionalText,
  readTexts,
  type TestsFound,
} from "./reading.ts";

/** What a test must say somewhere: source without it lets every program pass. */
const SAYS_SOMETHING = /\b(?:assert|raise|fail\s*\()/;
const IS_PYTEST = /^[ \t]*(?:async +)?def +test/m;
const IS_JSON = /^\s*[[{]/;

export function isPytestSource(text: string): boolean {
  return IS_PYTEST.test(text);
}

/** Assert statements, one test case each, with what runs before the program and before each of them. */
export function readAsserts(
  reading: Reading,
  statements: Cursor,
  { before = "", setup = "" } = {},
): TestsFound | null {
  const texts = readTexts(reading, statements);
  if (texts === null || !checkCount(reading, texts.length, statements.place)) return null;
  for (const [index, text] of texts.entries()) {
    if (!checkStatement(reading, text, placeWithin(statements.place, index))) return null;
  }
  return found({ kind: "asserts", cases: texts.map((statement) => ({ before, setup, statement })) });
}

/** MBPP: three asserts and what they need; MBPP+ has a longer program besides. */
export function readAssertLists(reading: Reading, fields: Fields, place: Place): TestsFound | null {
  const setup = readOptionalText(reading, fields.get("test_setup_code"));
  const before = readOptionalText(reading, fields.get("test_imports"));
  const statements: string[] = [];
  for (const name of ["test_list", "challenge_test_list", "test"]) {
    const cursor = fields.get(name);
    if (cursor === undefined) continue;
    const texts = readTexts(reading, cursor);
    if (texts === null) return null;
    for (const text of texts) if (!checkStatement(reading, text, cursor.place)) return null;
    statements.push(...texts);
  }
  if (!checkCount(reading, statements.length, place)) return null;
  return found({ kind: "asserts", cases: statements.map((statement) => ({ before, setup, statement })) });
}

/** HumanEval: `test` defines `check(candidate)`. */
export function readCheckFunction(reading: Reading, fields: Fields, place: Place): TestsFound | null {
  const source = readSource(reading, fields, "test", place);
  const entryPoint = readOptionalText(reading, fields.get("entry_point"));
  if (source === null) return null;
  if (!/^(?:Solution\(\)\.)?[\p{ID_Start}_][\p{ID_Continue}]*$/u.test(entryPoint)) {
    const detail = "must be the name of a Python function, or of a method as in 'Solution().name'";
    return complain(reading, placeWithin(place, "entry_point"), detail);
  }
  if (!/\bdef +check\b/.test(source)) {
    return complain(reading, placeWithin(place, "test"), "must define the function 'check'");
  }
  const before = readOptionalText(reading, fields.get("prompt"));
  return found({ kind: "check_function", entryPoint, before, source });
}

/** KodCode and others: a pytest file. */
export function readPytest(reading: Reading, fields: Fields, name: string, place: Place): TestsFound | null {
  return readPytestSource(reading, readOptionalText(reading, fields.get(name)), placeWithin(place, name));
}

export function readPytestSource(reading: Reading, source: string, place: Place): TestsFound | null {
  if (!checkStatement(reading, source, place)) return null;
  if (isPytestSource(source)) return found({ kind: "pytest", source });
  return complain(reading, place, "must define a function whose name begins with 'test'");
}

/** One program that runs after the completion's own. */
export function readFunctional(reading: Reading, fields: Fields, place: Place): TestsFound | null {
  const statement = readSource(reading, fields, "functional", place);
  return statement === null
    ? null
    : found({ kind: "asserts", cases: [{ before: "", setup: "", statement }] });
}

/** ROLL: objects with `assert_code`, which may be asserts, a `check` function or a pytest file. */
export function readAssertObjects(
  reading: Reading,
  objects: readonly { fields: Fields; place: Place }[],
): TestsFound | null {
  const [first] = objects;
  const cases: AssertCase[] = [];
  for (const { fields, place } of objects) {
    const statement = readSource(reading, fields, "assert_code", place);
    if (statement === null) return null;
    const before = readOptionalText(reading, fields.get("import_prefix"));
    const entryPoint = fields.get("entry_point");
    if (entryPoint === undefined && !isPytestSource(statement)) {
      cases.push({ before, setup: "", statement });
      continue;
    }
    if (objects.length > 1) {
      return complain(reading, place, "has an 'entry_point' or a pytest file: such a task has one test case");
    }
    if (entryPoint === undefined) return found({ kind: "pytest", source: statement });
    const asCheck: Fields = new Map([
      ...fields,
      ["test", fields.get("assert_code") as Cursor],
      ...(before === "" ? [] : [["prompt", fields.get("import_prefix") as Cursor] as const]),
    ]);
    return readCheckFunction(reading, asCheck, place);
  }
  return first === undefined ? null : found({ kind: "asserts", cases });
}

function readSource(reading: Reading, fields: Fields, name: string, place: Place): string | null {
  const source = readOptionalText(reading, fields.get(name));
  return checkStatement(reading, source, placeWithin(place, name)) ? source : null;
}

function checkStatement(reading: Reading, text: string, place: Place): boolean {
  if (SAYS_SOMETHING.test(text) && !IS_JSON.test(text)) return true;
  complain(reading, place, "must be Python source that asserts something: any program would pass this");
  return false;
}

function found(tests: TaskTests): TestsFound {
  return { tests, casePlaces: [] };
}
