/**
 * Test cases of an input and an output each, however they came: for standard input, or for calls of a function.
 */

import { writeJsonText } from "../grading/json-text.ts";
import { type JsonValue, readJson } from "../grading/json-value.ts";
import { type Cursor, isList, MOST_VALUES, nameType } from "./cursor.ts";
import type { CallCase, Place, StdinCase } from "./normal-form.ts";
import { complain, type Reading, readLines, type TestsFound } from "./reading.ts";

/** One case as its shape has it. */
export interface RawCase {
  readonly place: Place;
  readonly input: Cursor;
  readonly output: Cursor;
  /** What the case says of its kind, in one field or two. */
  readonly types: readonly Cursor[];
  /** The function that the case names. */
  readonly functionName: Cursor | undefined;
}

type Mode = "stdin" | "call";

const modes: Readonly<Record<string, Mode>> = {
  stdin: "stdin",
  stdin_stdout: "stdin",
  functional: "call",
  function_call: "call",
};
const LONGEST_NAME = 200;
/** Of a call's arguments, in characters, before they are read line by line. */
const LONGEST_CALL = 1_048_576;
const PYTHON_NAME = /^[\p{ID_Start}_][\p{ID_Continue}]*$/u;

/**
 * The normal form of cases that all are of one mode. `functionName` is what the shape says for all of them. Null, with
 * problems, when cases differ in mode or function, or one can't be read.
 */
export function buildCases(
  reading: Reading,
  cases: readonly RawCase[],
  functionName: Cursor | undefined,
): TestsFound | null {
  let first: { mode: Mode; name: string } | null = null;
  for (const single of cases) {
    const found = readMode(reading, single, functionName);
    if (found === null) return null;
    first ??= found;
    if (found.mode !== first.mode || found.name !== first.name) {
      const detail = `is ${describeMode(found)}, and the first test case is ${describeMode(first)}: a task has one kind of test`;
      return complain(reading, single.place, detail);
    }
  }
  if (first === null) return null;
  const places = cases.map(({ input, output }) => ({ input: input.place, output: output.place }));
  if (first.mode === "stdin") {
    const read = readAll(reading, cases, readStdinCase);
    return read && { tests: { kind: "stdin", cases: read }, casePlaces: places };
  }
  const read = decideWrapping(readAll(reading, cases, readCallCase));
  return read && { tests: { kind: "call", functionName: first.name, cases: read }, casePlaces: places };
}

/** Outputs are in lists of one in all cases of a task or in none: a program can't have the benefit of each. */
function decideWrapping(cases: readonly CallCase[] | null): CallCase[] | null {
  const mayBeWrapped = cases?.every((single) => single.mayBeWrapped) ?? false;
  return cases?.map((single) => ({ ...single, mayBeWrapped })) ?? null;
}

function readMode(
  reading: Reading,
  single: RawCase,
  shared: Cursor | undefined,
): { mode: Mode; name: string } | null {
  const name = readFunctionName(reading, single.functionName ?? shared);
  if (name === null) return null;
  const declared = readTypes(reading, single.types);
  if (declared === null) return null;
  if (declared === "stdin" && name !== "") {
    return complain(
      reading,
      single.place,
      `says that it reads standard input, and names the function '${name}'`,
    );
  }
  if (declared === "call" && name === "") {
    return complain(reading, single.place, "says that it calls a function, and nothing says which");
  }
  return { mode: name === "" ? "stdin" : "call", name };
}

/** Undefined where nothing is said. */
function readTypes(reading: Reading, types: readonly Cursor[]): Mode | undefined | null {
  let declared: Mode | undefined;
  for (const type of types) {
    const mode = readType(reading, type);
    if (mode === null) return null;
    if (declared !== undefined && mode !== declared) {
      return complain(reading, type.place, "contradicts the test's other type");
    }
    declared = mode;
  }
  return declared;
}

function readType(reading: Reading, { value, place }: Cursor): Mode | null {
  const mode = typeof value === "string" && Object.hasOwn(modes, value) ? modes[value] : undefined;
  const known = Object.keys(modes)
    .map((type) => `'${type}'`)
    .join(", ");
  return mode ?? complain(reading, place, `is no type of test that is known here; known are ${known}`);
}

/** Empty for none. */
function readFunctionName(reading: Reading, cursor: Cursor | undefined): string | null {
  if (cursor === undefined || cursor.value === "") return "";
  const { value, place } = cursor;
  if (typeof value === "string" && value.length <= LONGEST_NAME && PYTHON_NAME.test(value)) return value;
  return complain(reading, place, "must be the name of a Python function");
}

function describeMode({ mode, name }: { mode: Mode; name: string }): string {
  return mode === "stdin" ? "one that reads standard input" : `a call of '${name}'`;
}

/** All cases, or null with a problem for each that can't be read. */
function readAll<T>(
  reading: Reading,
  cases: readonly RawCase[],
  read: (reading: Reading, single: RawCase) => T | null,
): T[] | null {
  const found: T[] = [];
  for (const single of cases) {
    if (reading.problems.isFull()) break;
    const one = read(reading, single);
    if (one !== null) found.push(one);
  }
  return found.length === cases.length ? found : null;
}

function readStdinCase(reading: Reading, { input, output }: RawCase): StdinCase | null {
  const read = { input: readLines(reading, input), output: readLines(reading, output) };
  return read.input === null || read.output === null ? null : { input: read.input, output: read.output };
}

/**
 * An input that is a text has one JSON value per line, each an argument, and its output is a text of one JSON value. An
 * input that is a list has the arguments themselves, and its output is the value itself, in some datasets in a list
 * of one.
 */
function readCallCase(reading: Reading, { input, output }: RawCase): CallCase | null {
  if (typeof input.value === "string") return readCallTexts(reading, input, output);
  if (!isList(input.value)) {
    const detail = `must be a list of arguments, or a text with one JSON value per line, not ${nameType(input.value)}`;
    return complain(reading, input.place, detail);
  }
  const args = input.value.map((argument) => keepExactly(reading, argument, input.place));
  const expected = keepExactly(reading, output.value, output.place);
  if (expected === null || !areAll(args)) return null;
  return { arguments: args, expected, mayBeWrapped: isList(output.value) && output.value.length === 1 };
}

function readCallTexts(reading: Reading, input: Cursor, output: Cursor): CallCase | null {
  const text = input.value as string;
  if (text.length > LONGEST_CALL) {
    return complain(reading, input.place, `may have ${LONGEST_CALL} characters, and has ${text.length}`);
  }
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const args = lines.map((line) => readArgument(reading, line, input.place));
  if (typeof output.value !== "string") {
    return complain(reading, output.place, "must be a text with one JSON value, as its input is a text");
  }
  const expected = readArgument(reading, output.value, output.place);
  return expected === null || !areAll(args) ? null : { arguments: args, expected, mayBeWrapped: false };
}

function readArgument(reading: Reading, text: string, place: Place): string | null {
  const json = readJson(text, MOST_VALUES);
  if (json.kind === "value") return keepExactly(reading, json.value, place);
  return complain(reading, place, `must be JSON, one value per line: ${json.detail}`);
}

function keepExactly(reading: Reading, value: JsonValue, place: Place): string | null {
  if (isDeeperThan(value, mostLevels))
    return complain(reading, place, `is nested deeper than ${mostLevels} levels`);
  return writeJsonText(value) ?? complain(reading, place, "holds NaN or an infinity");
}

/** As deep as a value may be that a worker hands to a function, or takes from it. */
const mostLevels = 100;

function isDeeperThan(value: JsonValue, levels: number): boolean {
  const members = Array.isArray(value) ? value : value instanceof Map ? [...value.values()] : null;
  if (members === null) return false;
  return levels === 0 || members.some((member) => isDeeperThan(member, levels - 1));
}

function areAll(texts: readonly (string | null)[]): texts is readonly string[] {
  return !texts.includes(null);
}
