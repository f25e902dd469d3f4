/**
 * Lists of test cases: of objects with an input and an output under various names, or of assert statements.
 */
import type { JsonValue } from "../grading/json-value.ts";
import { type Cursor, isList, itemsOf, nameType } from "./cursor.ts";
import { buildCases, type RawCase } from "./input-output-cases.ts";
import type { Place } from "./normal-form.ts";
import {
  checkCount,
  complain,
  type Fields,
  openText,
  type Reading,
  readFields,
  type TestsFound,
} from "./reading.ts";
import { readAssertObjects, readAsserts } from "./statement-shapes.ts";

/** What a case's object may hold, by the field that tells one form from the others. */
const forms = {
  input: ["input", "output", "fn_name", "type", "testtype", "metadata", "problem_id"],
  stdin: ["stdin", "expected_stdout"],
  assert_code: ["assert_code", "entry_point", "import_prefix"],
} as const;

type Form = keyof typeof forms;

interface CaseObject {
  readonly form: Form;
  readonly fields: Fields;
  readonly place: Place;
}

/** Reads a list of test cases; each list may be a text. `functionName` is what is said beside the lists. */
export function readCaseLists(
  reading: Reading,
  lists: readonly Cursor[],
  place: Place,
  functionName?: Cursor,
): TestsFound | null {
  const items: Cursor[] = [];
  for (const list of lists) {
    const opened = openText(reading, list);
    if (opened === null) return null;
    if (!isList(opened.value)) {
      return complain(reading, opened.place, `must be a list of test cases, not ${nameType(opened.value)}`);
    }
    // Counted before each item is given its place.
    if (items.length + opened.value.length > reading.maxCases) {
      checkCount(reading, items.length + opened.value.length, place);
      return null;
    }
    items.push(...itemsOf(opened.value, opened.place));
  }
  if (!checkCount(reading, items.length, place)) return null;
  const [first] = items;
  if (typeof first?.value !== "string") return readObjects(reading, items, functionName);
  return lists.length === 1 && functionName === undefined
    ? readAsserts(reading, openText(reading, lists[0] as Cursor) as Cursor)
    : complain(reading, first.place, "must be an object with an input and an output, not a text");
}

function readObjects(
  reading: Reading,
  items: readonly Cursor[],
  functionName: Cursor | undefined,
): TestsFound | null {
  const objects: CaseObject[] = [];
  for (const item of items) {
    if (reading.problems.isFull()) return null;
    const object = readObject(reading, item, objects[0]?.form);
    if (object !== null) objects.push(object);
  }
  if (objects.length < items.length || reading.problems.items.length > 0) return null;
  if (objects[0]?.form === "assert_code") return readAssertObjects(reading, objects);
  const cases: RawCase[] = [];
  for (const object of objects) {
    const single = object.form === "input" ? readInputOutput(reading, object) : readStdin(reading, object);
    if (single !== null) cases.push(single);
  }
  return cases.length < objects.length ? null : buildCases(reading, cases, functionName);
}

function readObject(
  reading: Reading,
  { value, place }: Cursor,
  firstForm: Form | undefined,
): CaseObject | null {
  if (!(value instanceof Map)) {
    return complain(reading, place, `must be an object with an input and an output, not ${nameType(value)}`);
  }
  const form = (Object.keys(forms) as Form[]).find((name) => value.has(name));
  if (form === undefined) {
    return complain(
      reading,
      place,
      "has none of 'input', 'stdin' and 'assert_code', so that it is no test case",
    );
  }
  if (firstForm !== undefined && form !== firstForm) {
    return complain(
      reading,
      place,
      `has '${form}' where the first test case has '${firstForm}': a task has one kind of test`,
    );
  }
  return { form, fields: readFields(reading, value, place, forms[form]), place };
}

function readInputOutput(reading: Reading, { fields, place }: CaseObject): RawCase | null {
  const input = readEnd(reading, fields, "input", "stdin", place);
  const output = readEnd(reading, fields, "output", "stdout", place);
  const types = [fields.get("type"), fields.get("testtype")].filter((type) => type !== undefined);
  const named = readNames(reading, fields);
  if (input === null || output === null || named === null) return null;
  return { place, input, output, types, functionName: named[0] };
}

/** An input or output; in some datasets an object of one field. */
function readEnd(reading: Reading, fields: Fields, name: string, inner: string, place: Place): Cursor | null {
  const cursor = fields.get(name);
  if (cursor === undefined) return complain(reading, place, `has no '${name}'`);
  if (!(cursor.value instanceof Map)) return cursor;
  const innerFields = readFields(reading, cursor.value as ReadonlyMap<string, JsonValue>, cursor.place, [
    inner,
  ]);
  return innerFields.get(inner) ?? complain(reading, cursor.place, `has no '${inner}'`);
}

/** The names of the function that a case gives, which are the same; null with a problem when they differ. */
function readNames(reading: Reading, fields: Fields): Cursor[] | null {
  const metadata = fields.get("metadata");
  const inMetadata = metadata === undefined ? undefined : readMetadata(reading, metadata);
  if (inMetadata === null) return null;
  const names = [fields.get("fn_name"), inMetadata].filter((name) => name !== undefined);
  if (names.length === 2 && names[0]?.value !== names[1]?.value) {
    return complain(reading, (names[1] as Cursor).place, "names another function than 'fn_name'");
  }
  return names;
}

/** The function's name in a `metadata`, where much else may be; undefined when there is none. */
export function readMetadata(reading: Reading, metadata: Cursor): Cursor | undefined | null {
  if (metadata.value === "") return undefined;
  const opened = openText(reading, metadata);
  if (opened === null) return null;
  if (!(opened.value instanceof Map)) {
    return complain(reading, opened.place, `must be an object, not ${nameType(opened.value)}`);
  }
  const name = opened.value.get("func_name");
  if (name === undefined || name === null) return undefined;
  return { value: name, place: opened.place };
}

function readStdin(reading: Reading, { fields, place }: CaseObject): RawCase | null {
  const input = fields.get("stdin");
  const output = fields.get("expected_stdout");
  if (input === undefined) return complain(reading, place, "has no 'stdin'");
  if (output === undefined) return complain(reading, place, "has no 'expected_stdout'");
  return { place, input, output, types: [], functionName: undefined };
}
