/**
 * Objects that hold a task's tests: which shape they have is told by one of their fields.
 */

import { readCaseLists, readMetadata } from "./case-lists.ts";
import { type Cursor, isList, itemsOf, nameType, placeWithin } from "./cursor.ts";
import { buildCases, type RawCase } from "./input-output-cases.ts";
import type { Place } from "./normal-form.ts";
import {
  checkCount,
  complain,
  type Fields,
  openText,
  type Reading,
  readFields,
  readOptionalText,
  type TestsFound,
} from "./reading.ts";
import {
  readAssertLists,
  readAsserts,
  readCheckFunction,
  readFunctional,
  readPytest,
} from "./statement-shapes.ts";

type ReadShape = (reading: Reading, fields: Fields, place: Place) => TestsFound | null;

interface Shape {
  /** The field that tells this shape from the others. */
  readonly mark: string;
  /** What else may be there; what has no meaning for the tests is listed, too. */
  readonly others: readonly string[];
  readonly read: ReadShape;
}

/** As code_contests has them, each with an `input` and an `output` column. */
const testColumns = ["public_tests", "private_tests", "generated_tests"];

/** Reads what another field holds whole: a list, an object or a text. */
export type ReadInner = (reading: Reading, cursor: Cursor) => TestsFound | null;

/** The shapes, each with an object that holds nothing but it, so that two of them at once are a contradiction. */
function listShapes(readInner: ReadInner): readonly Shape[] {
  const unwrap =
    (field: string): ReadShape =>
    (reading, fields, place) => {
      const inner = fields.get(field);
      return inner === undefined ? complain(reading, place, `has no '${field}'`) : readInner(reading, inner);
    };
  return [
    { mark: "inputs", others: ["outputs", "fn_name", "returns", "assert_case", "remote"], read: readColumns },
    { mark: "assert_case", others: ["fn_name"], read: readAssertCase },
    { mark: "test_cases", others: ["fn_name", "language"], read: readNamedList },
    { mark: "public_test_cases", others: ["private_test_cases", "metadata"], read: readPublicAndPrivate },
    { mark: "private_test_cases", others: ["public_test_cases", "metadata"], read: readPublicAndPrivate },
    ...testColumns.map((mark) => ({
      mark,
      others: testColumns.filter((other) => other !== mark),
      read: readTestColumns,
    })),
    {
      mark: "official_tests",
      others: [
        "generated_checker",
        "input_mode",
        "interaction_format",
        "official_tests_complete",
        "executable",
        "examples",
        "generated_tests",
      ],
      read: readOfficialTests,
    },
    {
      mark: "test_list",
      others: ["test_setup_code", "test_imports", "challenge_test_list", "test"],
      read: readAssertLists,
    },
    { mark: "entry_point", others: ["test", "prompt"], read: readCheckFunction },
    {
      mark: "test",
      others: ["test_info"],
      read: (reading, fields, place) => readPytest(reading, fields, "test", place),
    },
    {
      mark: "pytest",
      others: [],
      read: (reading, fields, place) => readPytest(reading, fields, "pytest", place),
    },
    { mark: "functional", others: [], read: readFunctional },
    { mark: "unit_tests", others: [], read: unwrap("unit_tests") },
    { mark: "ground_truth", others: ["style"], read: unwrap("ground_truth") },
    { mark: "input_output", others: [], read: unwrap("input_output") },
    { mark: "verification_info", others: [], read: unwrap("verification_info") },
  ];
}

/** Makes the reader of objects. `readInner` reads what some of them hold. */
export function createObjectReader(readInner: ReadInner): ReadInner {
  const shapes = listShapes(readInner);
  return (reading, { value, place }) => {
    if (!(value instanceof Map)) return complain(reading, place, `must be an object, not ${nameType(value)}`);
    if (value.size === 0) return complain(reading, place, "holds no test case");
    const shape = shapes.find(({ mark }) => (value.get(mark) ?? null) !== null);
    if (shape === undefined) {
      const marks = shapes.map(({ mark }) => `'${mark}'`).join(", ");
      return complain(reading, place, `has no field by which its shape could be told: one of ${marks}`);
    }
    const problemsBefore = reading.problems.items.length;
    const fields = readFields(reading, value, place, [shape.mark, ...shape.others]);
    return reading.problems.items.length > problemsBefore ? null : shape.read(reading, fields, place);
  };
}

/** `inputs` and `outputs` side by side. */
function readColumns(reading: Reading, fields: Fields, place: Place): TestsFound | null {
  const remote = fields.get("remote");
  if (remote !== undefined && remote.value !== false) {
    return complain(reading, remote.place, "says that the tests are elsewhere: they must be in the request");
  }
  const asserts = fields.get("assert_case");
  if (asserts !== undefined) {
    const inputs = readColumn(reading, fields, "inputs", place);
    return inputs === null ? null : readAssertColumn(reading, asserts, inputs);
  }
  const cases = readPairs(reading, fields, ["inputs", "outputs"], place);
  if (cases === null) return null;
  const found = buildCases(reading, cases, fields.get("fn_name"));
  const returns = fields.get("returns");
  return found === null || returns === undefined ? found : readReturns(reading, found, returns);
}

/** Two columns of the same length, as cases. */
function readPairs(
  reading: Reading,
  fields: Fields,
  [inputName, outputName]: readonly [string, string],
  place: Place,
): RawCase[] | null {
  const inputs = readColumn(reading, fields, inputName, place);
  const outputs = inputs === null ? null : readColumn(reading, fields, outputName, place);
  if (inputs === null || outputs === null) return null;
  if (inputs.length !== outputs.length) {
    const detail = `has ${outputs.length} items, and '${inputName}' has ${inputs.length}`;
    return complain(reading, placeWithin(place, outputName), detail);
  }
  const readsInput = fields.get("fn_name") === undefined;
  return inputs.map((column, index): RawCase => {
    const output = outputs[index] as Cursor;
    const input = readsInput && column.value === null ? { ...column, value: "" } : column; // so APPS has empty ones
    return { place: input.place, input, output, types: [], functionName: undefined };
  });
}

/** One after the other; some of the three may be empty. */
function readTestColumns(reading: Reading, fields: Fields, place: Place): TestsFound | null {
  const cases: RawCase[] = [];
  for (const name of testColumns) {
    const tests = fields.get(name);
    if (tests === undefined || tests.value === null) continue;
    const opened = openText(reading, tests);
    if (opened === null) return null;
    if (!(opened.value instanceof Map))
      return complain(reading, opened.place, `must be an object, not ${nameType(opened.value)}`);
    const columns = readFields(reading, opened.value, opened.place, ["input", "output"]);
    if ([...columns.values()].every(({ value }) => isList(value) && value.length === 0)) continue;
    const found = readPairs(reading, columns, ["input", "output"], opened.place);
    if (found === null) return null;
    cases.push(...found);
  }
  return checkCount(reading, cases.length, place) ? buildCases(reading, cases, undefined) : null;
}

/** verl: asserts alone, and the name of the function that they call. */
function readAssertCase(reading: Reading, fields: Fields): TestsFound | null {
  return readAsserts(reading, fields.get("assert_case") as Cursor);
}

/** Functions that change an argument in place say which: `"argument 0"`. */
function readReturns(reading: Reading, found: TestsFound, { value, place }: Cursor): TestsFound | null {
  const { tests } = found;
  if (tests.kind !== "call") return complain(reading, place, "stands beside tests that call no function");
  const [, digits] = (typeof value === "string" && /^argument (\d{1,3})$/.exec(value)) || [];
  if (digits === undefined)
    return complain(reading, place, "must be 'argument' and a number, the first being 0");
  const changedArgument = Number(digits);
  if (tests.cases.some((testCase) => testCase.arguments.length <= changedArgument)) {
    return complain(reading, place, "counts further than a test case has arguments");
  }
  return { ...found, tests: { ...tests, changedArgument } };
}

function readColumn(reading: Reading, fields: Fields, name: string, place: Place): Cursor[] | null {
  const column = fields.get(name);
  if (column === undefined) return complain(reading, place, `has no '${name}'`);
  const opened = openText(reading, column);
  if (opened === null) return null;
  if (!isList(opened.value)) {
    return complain(reading, opened.place, `must be a list, not ${nameType(opened.value)}`);
  }
  return checkCount(reading, opened.value.length, opened.place) ? itemsOf(opened.value, opened.place) : null;
}

/** Asserts beside columns that are there for their length only. */
function readAssertColumn(reading: Reading, asserts: Cursor, inputs: readonly Cursor[]): TestsFound | null {
  const other = inputs.find(({ value }) => value !== "" && value !== null);
  if (other !== undefined)
    return complain(reading, other.place, "stands beside 'assert_case': a task has one kind of test");
  return readAsserts(reading, asserts);
}

function readNamedList(reading: Reading, fields: Fields, place: Place): TestsFound | null {
  const language = fields.get("language");
  if (language !== undefined && !/^py(thon)?3?$/i.test(String(language.value))) {
    return complain(reading, language.place, "must be 'python': other languages are not run here");
  }
  const list = fields.get("test_cases") as Cursor;
  return readCaseLists(reading, [list], placeWithin(place, "test_cases"), fields.get("fn_name"));
}

function readPublicAndPrivate(reading: Reading, fields: Fields, place: Place): TestsFound | null {
  const metadata = fields.get("metadata");
  const functionName = metadata === undefined ? undefined : readMetadata(reading, metadata);
  if (functionName === null) return null;
  const lists = ["public_test_cases", "private_test_cases"].map((name) => fields.get(name));
  const given = lists.filter((list) => list !== undefined && list.value !== "") as Cursor[];
  return readCaseLists(reading, given, place, functionName);
}

/** Tests of Codeforces, with a checker where several outputs are right. */
function readOfficialTests(reading: Reading, fields: Fields, place: Place): TestsFound | null {
  const inputMode = fields.get("input_mode");
  if (inputMode !== undefined && inputMode.value !== "stdio") {
    return complain(reading, inputMode.place, "must be 'stdio': programs here read standard input, no files");
  }
  const interaction = fields.get("interaction_format");
  if (interaction !== undefined && interaction.value !== "") {
    return complain(reading, interaction.place, "says that the task is interactive, which can't be run here");
  }
  const list = fields.get("official_tests") as Cursor;
  const found = readCaseLists(reading, [list], placeWithin(place, "official_tests"));
  const checker = readOptionalText(reading, fields.get("generated_checker"));
  if (found === null || checker.trim() === "") return found;
  if (found.tests.kind !== "stdin") {
    return complain(
      reading,
      placeWithin(place, "generated_checker"),
      "stands beside tests that have no output to check",
    );
  }
  return { ...found, tests: { kind: "checked", cases: found.tests.cases, checker } };
}
