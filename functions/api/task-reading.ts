/**
 * From a task's JSON to a task that is ready for grading, or to everything that is wrong with it.
 */
import { createHash } from "node:crypto";
import { z } from "@hono/zod-openapi";
import { type Comparison, prepareExpected } from "../grading/comparison.ts";
import type { PreparedTask, PrepareTask } from "../rewards/task.ts";
import type { CasePlaces, Place, TaskTests } from "../tasks/normal-form.ts";
import type { UnpackText } from "../tasks/packed-text.ts";
import { readTests } from "../tasks/tests-reader.ts";
import { formatPointer, type Path } from "./json-pointer.ts";
import type { RequestSchemas } from "./request-schemas.ts";
import { type ProblemList, readAgainst } from "./schema-reading.ts";
import { type LimitsJson, readLimits } from "./task-limits-reading.ts";
import { taskLimits } from "./task-schemas.ts";
import { readScoring, type ScoringJson } from "./task-scoring-reading.ts";

/** What reading the tasks of one request needs. */
export interface TaskReading {
  readonly problems: ProblemList;
  readonly prepareTask: PrepareTask;
  readonly unpack: UnpackText;
  /** Tasks that were read before, by what was sent: a packed one is a thousand times what it takes to send it again. */
  readonly known: Map<string, PreparedTask>;
}

/** A task that is ready; null for one that has problems. */
export type ReadTask = (reading: TaskReading, value: unknown, path: Path) => PreparedTask | null;

/** A task's JSON once it has its shape and its defaults; parts with problems are missing, whatever their type says. */
interface TaskJson {
  readonly test_cases?: readonly { readonly input: string; readonly output: string }[];
  readonly tests?: unknown;
  readonly comparison?: Comparison;
  readonly limits: LimitsJson;
  readonly scoring: ScoringJson;
}

/** The texts of one test case, which may be anything else while there are problems, and where they stand. */
interface CaseTexts {
  readonly input: unknown;
  readonly output: unknown;
  readonly places: CasePlaces;
}

/** A task's tests, from either of the two fields that may have them. */
interface TestsFound {
  /** Null while there are problems. */
  readonly tests: TaskTests | null;
  readonly cases: readonly CaseTexts[];
  readonly defaultComparison: Comparison;
  readonly place: Place;
}

/** Makes the reader of tasks. It adds what is wrong to the reading's problems. */
export function createTaskReader({ Task, Limits }: Pick<RequestSchemas, "Task" | "Limits">): ReadTask {
  const OpenTask = Task.extend({ tests: z.unknown().optional() });
  const readNew: ReadTask = (reading, value, path) => {
    const { problems } = reading;
    const soFar = problems.items.length;
    const task = readAgainst(OpenTask, value, path, problems) as TaskJson | undefined;
    if (task === undefined) return null;
    const raw = value as Record<string, unknown>;
    const hasShape = problems.items.length === soFar;
    const found = findTests(reading, task, raw, path);
    const limits = task.limits && readLimits(Limits, task.limits, raw.limits, [...path, "limits"], problems);
    const scoring =
      task.scoring &&
      readScoring(task.scoring, raw.scoring, countCases(found), [...path, "scoring"], problems);
    const isChosen = Object.hasOwn(raw, "comparison");
    const comparison = isChosen ? task.comparison : found?.defaultComparison;
    checkTexts(found?.cases ?? [], limits?.outputBytes ?? Number.POSITIVE_INFINITY, problems);
    if (problems.items.length > soFar) {
      if (!hasShape && comparison !== undefined) checkReadability(comparison, found?.cases ?? [], problems);
      return null;
    }
    if (found?.tests == null || comparison === undefined || !limits || !scoring) return null;
    return prepare(reading, { tests: found.tests, comparison, limits, ...scoring }, found);
  };
  return (reading, value, path) => {
    const key = hashSent(value);
    const task = reading.known.get(key) ?? readNew(reading, value, path);
    if (task !== null) reading.known.set(key, task);
    return task;
  };
}

function hashSent(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("base64");
}

function prepare(
  { prepareTask, problems }: TaskReading,
  definition: Parameters<PrepareTask>[0],
  { cases, place }: TestsFound,
): PreparedTask | null {
  const preparation = prepareTask(definition);
  switch (preparation.kind) {
    case "ready":
      return preparation.task;
    case "unsupported":
      addAt(problems, place, preparation.detail);
      return null;
    case "unreadable":
      for (const { caseIndex, detail } of preparation.problems) {
        addAt(problems, cases[caseIndex]?.places.output ?? place, describeUnreadable(detail));
      }
      return null;
    default:
      throw new Error(`unknown preparation ${JSON.stringify(preparation satisfies never)}`);
  }
}

/** Null when there are none, or two, or ones that can't be read. */
function findTests(
  { problems, unpack }: TaskReading,
  task: TaskJson,
  raw: Record<string, unknown>,
  path: Path,
): TestsFound | null {
  const hasTests = Object.hasOwn(raw, "tests");
  const hasTestCases = Object.hasOwn(raw, "test_cases");
  if (hasTests && hasTestCases) {
    problems.add([...path, "tests"], "stands beside 'test_cases': a task has one of the two");
  } else if (!hasTests && !hasTestCases) {
    problems.add([...path, "test_cases"], "is missing; a task has it, or 'tests' in a dataset's own shape");
  }
  if (hasTests === hasTestCases) return null;
  if (hasTestCases) return task.test_cases === undefined ? null : findTestCases(task.test_cases, path);
  const testsPath = [...path, "tests"];
  const reading = readTests(task.tests, { path: testsPath, unpack, maxCases: taskLimits.testCases });
  if (reading.kind === "refused") {
    for (const { place, detail } of reading.problems) addAt(problems, place, detail);
    return null;
  }
  const { tests, casePlaces } = reading;
  const hasTexts = tests.kind === "stdin" || tests.kind === "checked";
  const cases = hasTexts
    ? tests.cases.map((texts, index) => ({ ...texts, places: casePlaces[index] as CasePlaces }))
    : [];
  const defaultComparison: Comparison = hasTexts ? { type: "text", strict: false } : { type: "json" };
  return { tests, cases, defaultComparison, place: { path: testsPath, inside: null } };
}

function findTestCases(testCases: NonNullable<TaskJson["test_cases"]>, path: Path): TestsFound {
  const listPath = [...path, "test_cases"];
  const cases = testCases.map((testCase, index): CaseTexts => {
    const at = (field: string) => ({ path: [...listPath, index, field], inside: null });
    return {
      input: testCase?.input,
      output: testCase?.output,
      places: { input: at("input"), output: at("output") },
    };
  });
  const place = { path: listPath, inside: null };
  return { tests: { kind: "stdin", cases: testCases }, cases, defaultComparison: { type: "json" }, place };
}

/** Null while it isn't known. */
function countCases(found: TestsFound | null): number | null {
  if (found?.tests == null) return null;
  return "cases" in found.tests ? found.tests.cases.length : 1;
}

/** What a text's schema can't say. Works on a task with problems too: what is well formed in it is checked. */
function checkTexts(cases: readonly CaseTexts[], outputBytes: number, problems: ProblemList): void {
  for (const { input, output, places } of cases) {
    if (problems.isFull()) return;
    const checks = [
      [input, places.input, taskLimits.inputBytes, ""],
      [output, places.output, outputBytes, " (the limit 'output_bytes')"],
    ] as const;
    for (const [text, place, limitBytes, source] of checks) {
      const detail = describeText(text, limitBytes, source);
      if (detail !== null) addAt(problems, place, detail);
    }
  }
}

function describeText(text: unknown, limitBytes: number, source: string): string | null {
  if (typeof text !== "string") return null;
  if (exceedsBytes(text, limitBytes))
    return `may have ${limitBytes} bytes in UTF-8${source}, and has ${Buffer.byteLength(text)}`;
  if (!text.isWellFormed()) return "has a lone surrogate, which no UTF-8 text can hold";
  return null;
}

function exceedsBytes(text: string, limitBytes: number): boolean {
  return text.length * 3 > limitBytes && Buffer.byteLength(text) > limitBytes;
}

/** Expected outputs of a task that can't be prepared as a whole, since something else is wrong with it. */
function checkReadability(comparison: Comparison, cases: readonly CaseTexts[], problems: ProblemList): void {
  for (const { output, places } of cases) {
    if (problems.isFull()) return;
    if (typeof output !== "string") continue;
    const expected = prepareExpected(comparison, output);
    if (expected.kind === "unreadable") addAt(problems, places.output, describeUnreadable(expected.detail));
  }
}

function describeUnreadable(detail: string): string {
  return `can't be read by the task's comparison: ${detail}`;
}

/** A pointer leads into the request only; what is wrong inside a text of it is said in words. */
function addAt(problems: ProblemList, { path, inside }: Place, detail: string): void {
  const where =
    inside === null || inside.length === 0 ? "" : `at ${formatPointer(inside)} of what it holds: `;
  problems.add(path, where + detail);
}
