/**
 * A task's test cases, of whichever kind, as what a worker is sent of each and what its answer is held against.
 */
import { type Comparison, prepareExpected } from "../grading/comparison.ts";
import type { OutputMatcher } from "../grading/expectation.ts";
import { readJson } from "../grading/json-value.ts";
import { compareReturned } from "../grading/value-comparison.ts";
import type {
  AssertTests,
  CallCase,
  CallTests,
  CheckedTests,
  CheckFunctionTests,
  PytestTests,
  StdinTests,
  TaskTests,
} from "../tasks/normal-form.ts";
import type { Limits, RunMode } from "./ports.ts";

export type CasesPreparation =
  | {
      readonly kind: "ok";
      readonly mode: RunMode;
      readonly checker?: string;
      readonly inputs: readonly string[];
      readonly matchers: readonly OutputMatcher[];
    }
  | { readonly kind: "unsupported"; readonly detail: string }
  | {
      readonly kind: "unreadable";
      readonly problems: readonly { readonly caseIndex: number; readonly detail: string }[];
    };

/** Of a checker's source. */
const LARGEST_CHECKER_BYTES = 65_536;
/** Of a call's arguments, as JSON. */
const LARGEST_CALL_BYTES = 1_048_576;

/** Reads every expected output once. */
export function prepareCases(tests: TaskTests, comparison: Comparison, limits: Limits): CasesPreparation {
  switch (tests.kind) {
    case "stdin":
      return prepareOutputs(tests, comparison);
    case "checked":
      return prepareChecked(tests, comparison);
    case "call":
      return prepareCalls(tests, comparison, limits);
    case "asserts":
    case "check_function":
    case "pytest":
      return prepareStatements(tests, comparison);
    default:
      throw new Error(`unknown tests ${JSON.stringify(tests satisfies never)}`);
  }
}

function prepareOutputs(tests: StdinTests, comparison: Comparison): CasesPreparation {
  const matchers: OutputMatcher[] = [];
  const problems: { caseIndex: number; detail: string }[] = [];
  for (const [caseIndex, testCase] of tests.cases.entries()) {
    const expected = prepareExpected(comparison, testCase.output);
    if (expected.kind === "ok") matchers.push(expected.matches);
    else problems.push({ caseIndex, detail: expected.detail });
  }
  if (problems.length > 0) return { kind: "unreadable", problems };
  if (matchers.every((matches) => matches(""))) {
    const detail =
      "no test case of this task expects any output, so that a program that does nothing would be right";
    return { kind: "unreadable", problems: [{ caseIndex: 0, detail }] };
  }
  return { kind: "ok", mode: "main", inputs: tests.cases.map(({ input }) => input), matchers };
}

function prepareChecked({ cases, checker }: CheckedTests, comparison: Comparison): CasesPreparation {
  if (comparison.type !== "text" || comparison.strict) {
    return {
      kind: "unsupported",
      detail: "have a checker that judges outputs: such a task has no 'comparison'",
    };
  }
  if (Buffer.byteLength(checker) > LARGEST_CHECKER_BYTES) {
    return { kind: "unsupported", detail: `have a checker of over ${LARGEST_CHECKER_BYTES} bytes` };
  }
  const inputs = cases.map(({ input, output }) => JSON.stringify({ input, expected: output }));
  return {
    kind: "ok",
    mode: "checked",
    checker,
    inputs,
    matchers: inputs.map(() => (said) => said === "right"),
  };
}

function prepareCalls(tests: CallTests, comparison: Comparison, limits: Limits): CasesPreparation {
  if (comparison.type !== "json") {
    const detail = `call a function: what it returns is compared as a value, so that 'comparison' may be 'json', and is '${comparison.type}'`;
    return { kind: "unsupported", detail };
  }
  const { functionName, cases } = tests;
  if (cases.every(({ expected }) => expected === "null")) {
    const detail =
      "expect null of every call, so that a function that does nothing would be right; of one that changes an argument in place, say which in 'returns'";
    return { kind: "unsupported", detail };
  }
  const counts = tests.changedArgument === undefined ? "" : `,"returns":${tests.changedArgument}`;
  const inputs = cases.map(
    ({ arguments: given }) =>
      `{"function":${JSON.stringify(functionName)},"arguments":[${given.join(",")}]${counts}}`,
  );
  for (const [index, testCase] of cases.entries()) {
    const detail = describeLargeCase(inputs[index] as string, testCase, limits);
    if (detail !== null)
      return { kind: "unsupported", detail: `are too large: in test case ${index + 1}, ${detail}` };
  }
  const matchers = cases.map((testCase) => prepareReturned(testCase, comparison.tolerance));
  return { kind: "ok", mode: "call", inputs, matchers };
}

function describeLargeCase(input: string, { expected }: CallCase, limits: Limits): string | null {
  if (Buffer.byteLength(input) > LARGEST_CALL_BYTES)
    return `the arguments have over ${LARGEST_CALL_BYTES} bytes`;
  if (Buffer.byteLength(expected) <= limits.outputBytes) return null;
  return `the expected value has over ${limits.outputBytes} bytes (the limit 'output_bytes')`;
}

/** Keeps the text: the values of a large task would take many times its memory, and are cheap to read again. */
function prepareReturned(
  { expected, mayBeWrapped }: CallCase,
  tolerance: Parameters<typeof compareReturned>[2],
): OutputMatcher {
  return (answer) => {
    const reading = readJson(expected);
    if (reading.kind === "invalid") throw new Error(`an expected value is no JSON: ${reading.detail}`);
    const { value } = reading;
    if (compareReturned(value, answer, tolerance)) return true;
    return mayBeWrapped && Array.isArray(value) && compareReturned(value[0], answer, tolerance);
  };
}

/** What `functions/supervisor/judge.py` is given of each test. */
function prepareStatements(
  tests: AssertTests | CheckFunctionTests | PytestTests,
  comparison: Comparison,
): CasesPreparation {
  if (comparison.type !== "json" || comparison.tolerance !== undefined) {
    const detail = "are Python source that judges for itself: such a task has no 'comparison'";
    return { kind: "unsupported", detail };
  }
  const inputs = describeTests(tests).map((test) => JSON.stringify(test));
  for (const [index, input] of inputs.entries()) {
    if (Buffer.byteLength(input) > LARGEST_CALL_BYTES) {
      return {
        kind: "unsupported",
        detail: `are too large: test ${index + 1} has over ${LARGEST_CALL_BYTES} bytes`,
      };
    }
  }
  return { kind: "ok", mode: "tests", inputs, matchers: inputs.map(() => (said) => said === "passed") };
}

function describeTests(tests: AssertTests | CheckFunctionTests | PytestTests): object[] {
  switch (tests.kind) {
    case "asserts":
      return tests.cases.map((testCase) => ({ kind: tests.kind, ...testCase }));
    case "check_function": {
      const { kind, before, source, entryPoint } = tests;
      return [{ kind, before, source, entry_point: entryPoint }];
    }
    case "pytest":
      return [{ kind: tests.kind, source: tests.source }];
    default:
      throw new Error(`unknown tests ${JSON.stringify(tests satisfies never)}`);
  }
}
