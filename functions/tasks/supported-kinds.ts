import type { CallTests, StdinTests, TaskTests, TestsKind } from "./normal-form.ts";

/** The kinds of tests that workers can run: the one place that says so. */
export type RunnableTests = StdinTests | CallTests;

export function isRunnable(tests: TaskTests): tests is RunnableTests {
  return isRunnableKind(tests.kind);
}

export function isRunnableKind(kind: TestsKind): boolean {
  return kind === "stdin" || kind === "call";
}

const descriptions: Readonly<Record<Exclude<TaskTests["kind"], RunnableTests["kind"]>, string>> = {
  checked: "tests with a checker program",
  asserts: "assert statements",
  check_function: "tests by a 'check' function",
  pytest: "pytest files",
};

/** Why a task with such tests is refused. */
export function describeUnsupported(tests: Exclude<TaskTests, RunnableTests>): string {
  return `${descriptions[tests.kind]} are read, and not supported yet; programs that read standard input, and functions that are called, are`;
}
