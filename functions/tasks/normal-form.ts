/**
 * What a task's tests are once it no longer matters how a dataset wrote them down.
 *
 * One kind per way of running: a worker runs all tests of a task in the same way. Values of calls are JSON texts, so
 * that integers of any length and the difference between `1` and `1.0` get through.
 */
export type TaskTests =
  | StdinTests
  | CheckedTests
  | CallTests
  | AssertTests
  | CheckFunctionTests
  | PytestTests;

export type TestsKind = TaskTests["kind"];

/** The program reads standard input; what it prints is held against the expected output. */
export interface StdinTests {
  readonly kind: "stdin";
  readonly cases: readonly StdinCase[];
}

export interface StdinCase {
  readonly input: string;
  readonly output: string;
}

/** As `stdin`, with a Python program that says whether an output is right: there are several right ones. */
export interface CheckedTests {
  readonly kind: "checked";
  readonly cases: readonly StdinCase[];
  readonly checker: string;
}

/** The program defines a function, or a class `Solution` with such a method. */
export interface CallTests {
  readonly kind: "call";
  readonly functionName: string;
  /** Set when it is this argument, as the call leaves it, that counts, and not what the call returns. */
  readonly changedArgument?: number;
  readonly cases: readonly CallCase[];
}

export interface CallCase {
  /** Positional arguments, one JSON text each. */
  readonly arguments: readonly string[];
  /** What the call should return, or make of the argument that counts, as a JSON text. */
  readonly expected: string;
  /**
   * Set when `expected` is a list of one item in a dataset that wraps values at will: its item is then right as well.
   */
  readonly mayBeWrapped: boolean;
}

/** Python statements that run after the program, each a test case: it passes when nothing is raised. */
export interface AssertTests {
  readonly kind: "asserts";
  readonly cases: readonly AssertCase[];
}

export interface AssertCase {
  /** Python source that runs before the program, such as imports; may be empty. */
  readonly before: string;
  /** Python source that runs after the program and before the statement; may be empty. */
  readonly setup: string;
  readonly statement: string;
}

/** Python source that defines `check(candidate)`, called with the program's function; one test case. */
export interface CheckFunctionTests {
  readonly kind: "check_function";
  readonly entryPoint: string;
  /** Python source that runs before the program, such as the prompt's imports and helpers; may be empty. */
  readonly before: string;
  readonly source: string;
}

/** A pytest file that imports the program as the module `solution`; one test case. */
export interface PytestTests {
  readonly kind: "pytest";
  readonly source: string;
}

/** Where in a request something stands. */
export interface Place {
  /** The way to it from the task. */
  readonly path: readonly (string | number)[];
  /** The way on, inside a text found there that holds JSON or the like; null when `path` leads to the thing itself. */
  readonly inside: readonly (string | number)[] | null;
}

/** Where each case's texts stand in the request, for kinds whose cases have an input and an output. */
export interface CasePlaces {
  readonly input: Place;
  readonly output: Place;
}

export interface TestsProblem {
  readonly place: Place;
  readonly detail: string;
}
