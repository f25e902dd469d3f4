import type { CheckedTests, TaskTests, TestsKind } from "./normal-form.ts";

/** The kinds of tests that workers can run: the one place that says so. */
export type RunnableTests = Exclude<TaskTests, CheckedTests>;

export function isRunnable(tests: TaskTests): tests is RunnableTests {
  return isRunnableKind(tests.kind);
}

export function isRunnableKind(kind: TestsKind): boolean {
  return kind !== "checked";
}

/** Why a task with such tests is refused. */
export function describeUnsupported(_tests: Exclude<TaskTests, RunnableTests>): string {
  return "tests with a checker program are read, and not supported yet";
}
