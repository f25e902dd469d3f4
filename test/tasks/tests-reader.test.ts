import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { functionExamples } from "../../functions/tasks/examples/function-examples.ts";
import { stdinExamples } from "../../functions/tasks/examples/stdin-examples.ts";
import { createUnpacker } from "../../functions/tasks/packed-text.ts";
import { readTests } from "../../functions/tasks/tests-reader.ts";
import { createTestApp, post, readProblem } from "../api/test-app.ts";
import { brokenRows, brokenTexts } from "./broken-rows.ts";
import { normalForms } from "./normal-forms.ts";

const examples = [...stdinExamples, ...functionExamples];

function read(tests: unknown) {
  return readTests(tests, { path: [], unpack: createUnpacker(), maxCases: 1_000 });
}

function readCases(tests: unknown) {
  const reading = read(tests);
  if (reading.kind === "refused") throw new Error(JSON.stringify(reading.problems));
  return reading.tests;
}

describe("each shape of tests", () => {
  it.each(examples.map((example) => [example.name, example] as const))(
    "%s has its normal form",
    (name, example) => {
      const reading = read(example.tests);
      expect(reading).toMatchObject({ kind: "ok", tests: normalForms[name] });
      expect(reading.kind === "ok" && reading.tests.kind).toBe(example.kind);
    },
  );

  it.each(examples.map((example) => [example.name, example] as const))(
    "%s may be an object or a text, encoded once or twice",
    (name, { tests }) => {
      if (typeof tests === "string" && !/^\s*[[{]/.test(tests)) return;
      const value = typeof tests === "string" && !tests.includes("None") ? JSON.parse(tests) : tests;
      const text = typeof value === "string" ? value : JSON.stringify(value);
      for (const form of [value, text, JSON.stringify(text)])
        expect(readCases(form)).toEqual(normalForms[name]);
    },
  );

  it("is known by its example, and no example is missing", () => {
    expect(examples.map(({ name }) => name).sort()).toEqual(Object.keys(normalForms).sort());
  });

  it("tells where each case's texts stand", () => {
    const reading = read({
      public_test_cases: '[{"input": "1", "output": "2"}]',
      private_test_cases: [{ input: "3", output: "4" }],
    });
    expect(reading).toMatchObject({
      casePlaces: [
        { input: { path: ["public_test_cases"], inside: [0, "input"] } },
        { output: { path: ["private_test_cases", 0, "output"], inside: null } },
      ],
    });
  });
});

describe("what a table leaves empty", () => {
  it.each([
    [
      "nulls for what a row doesn't have",
      [{ input: "1", output: "2", fn_name: null, type: null, metadata: null }],
    ],
    ["an empty name of a function", { inputs: ["1"], outputs: ["2"], fn_name: "" }],
    [
      "empty private tests",
      { public_test_cases: [{ input: "1", output: "2" }], private_test_cases: "", metadata: "" },
    ],
    ["a checker of blanks", { official_tests: [{ input: "1", output: "2" }], generated_checker: "\n" }],
    [
      "metadata with other things in it",
      { public_test_cases: [{ input: "1", output: "2" }], metadata: '{"x": 1}' },
    ],
    ["numbers of rows", [{ problem_id: "1/A", input: "1", output: "2" }]],
  ])("is passed over: %s", (_name, tests) => {
    expect(readCases(tests)).toEqual({ kind: "stdin", cases: [{ input: "1", output: "2" }] });
  });
});

describe("values of calls", () => {
  const callOf = (tests: unknown) => {
    const found = readCases(tests);
    return found.kind === "call" ? found.cases[0] : undefined;
  };

  it.each([
    [
      "integers of any length in a text",
      '[{"input": "123456789012345678901", "output": "1", "fn_name": "f"}]',
      ["123456789012345678901"],
      "1",
      false,
    ],
    [
      "floats as floats in a text",
      '{"inputs": [[1.0, 1]], "outputs": [2.50], "fn_name": "f"}',
      ["1.0", "1"],
      "2.5",
      false,
    ],
    [
      "floats without their point",
      '{"inputs": [[1e30]], "outputs": [-0.0], "fn_name": "f"}',
      ["1e+30"],
      "-0.0",
      false,
    ],
    [
      "lists, objects, texts",
      { inputs: [[[1, "a"], { k: null }]], outputs: [[[true]]], fn_name: "f" },
      ['[1,"a"]', '{"k":null}'],
      "[[true]]",
      true,
    ],
    ["no arguments at all", [{ input: "", output: "3", fn_name: "f" }], [], "3", false],
    [
      "a value that is a list of two",
      { inputs: [[1]], outputs: [[1, 2]], fn_name: "f" },
      ["1"],
      "[1,2]",
      false,
    ],
    ["a value that is a text", { inputs: [["ab"]], outputs: ["ba"], fn_name: "f" }, ['"ab"'], '"ba"', false],
  ])("are kept: %s", (_name, tests, args, expected, mayBeWrapped) => {
    expect(callOf(tests)).toEqual({ arguments: args, expected, mayBeWrapped });
  });
});

describe("outputs of calls in lists of one", () => {
  const wrapping = (outputs: unknown[]) => {
    const tests = readCases({ fn_name: "f", inputs: outputs.map(() => [1]), outputs });
    return tests.kind === "call" ? tests.cases.map(({ mayBeWrapped }) => mayBeWrapped) : null;
  };

  it.each([
    ["all of them may be wrapped", [[1], [[2]], ["x"]], true],
    ["none, as one is no list", [[1], 2], false],
    ["none, as one is a list of two", [[1], [1, 2]], false],
    ["none, as one is empty", [[1], []], false],
  ])("%s", (_, outputs, expected) => {
    expect(wrapping(outputs)).toEqual(outputs.map(() => expected));
  });
});

describe("a row that can't be read", () => {
  it.each([...brokenRows, ...brokenTexts])(
    "is refused before any worker is asked for: %s",
    async (_name, tests, pointer, detail) => {
      const testApp = createTestApp();
      const answer = await post(testApp, {
        tasks: { row: { tests } },
        samples: [{ task: "row", completion: "x" }],
      });
      const problem = await readProblem(answer);
      expect(problem).toMatchObject({ status: 422, code: "invalid_request" });
      expect(problem.errors[0]).toEqual({
        pointer: `/tasks/row/tests${pointer}`,
        detail: expect.stringContaining(detail),
      });
      expect(testApp.workers.acquires).toEqual([]);
    },
  );

  it("is told all that is wrong with it, up to a hundred problems", async () => {
    const tests = Array.from({ length: 900 }, (_, index) =>
      index % 2 === 0 ? { input: "1" } : { input: "1", output: 2 },
    );
    const answer = await post(createTestApp(), { samples: [{ task: { tests }, completion: "x" }] });
    const { errors } = await readProblem(answer);
    expect(errors).toHaveLength(100);
    expect(errors[1]?.pointer).toBe("/samples/0/task/tests/2");
  });
});

describe("tests that call a function", () => {
  const calls = (outputs: unknown[]) => ({ fn_name: "f", inputs: outputs.map(() => [1]), outputs });
  it.each<[string, object, string]>([
    [
      "a comparison of outputs",
      { tests: calls([1]), comparison: { type: "tokens" } },
      "'comparison' may be 'json'",
    ],
    ["nothing expected", { tests: calls([null, null]) }, "expect null of every call"],
    [
      "a value over the limit",
      { tests: calls(["x".repeat(99)]), limits: { output_bytes: 64 } },
      "in test case 1",
    ],
    [
      "arguments over 1 MiB",
      { tests: { fn_name: "f", inputs: [["x".repeat(1 << 20)]], outputs: [1] } },
      "in test case 1",
    ],
    ["an argument beyond the last", { tests: { ...calls([1]), returns: "argument 1" } }, "counts further"],
    [
      "another word for it",
      { tests: { ...calls([1]), returns: "first" } },
      "must be 'argument' and a number",
    ],
  ])("are refused with %s", async (_name, task, detail) => {
    const testApp = createTestApp();
    const answer = await post(testApp, { samples: [{ task, completion: "```\nx\n```" }] });
    const { errors } = await readProblem(answer);
    const pointer = expect.stringMatching(/^\/samples\/0\/task\/tests(\/returns)?$/);
    expect(errors).toEqual([{ pointer, detail: expect.stringContaining(detail) }]);
  });
});

describe("tests of very many values", () => {
  const few = (count: number, item: string) => `[${`${item},`.repeat(count - 1)}${item}]`;
  const objects = few(2_200_000, "{}");
  it.each<[string, string]>([
    ["lists", `{"samples":[{"task":{"tests":${few(9_000_000, "[]")}},"completion":""}]}`],
    ["cases", `{"samples":[{"task":{"tests":${objects}},"completion":""}]}`],
    ["numbers in a text", `{"samples":[{"task":{"tests":"${few(9_000_000, "1")}"},"completion":""}]}`],
    [
      "numbers in Python",
      `{"samples":[{"task":{"tests":"${few(9_000_000, "1").replace("1", "None")}"},"completion":""}]}`,
    ],
    [
      "columns",
      `{"samples":[{"task":{"tests":{"inputs":${few(1_900_000, '""')},"outputs":[]}},"completion":""}]}`,
    ],
  ])("are refused without much memory: %s", async (_name, body) => {
    const before = process.memoryUsage().rss;
    const answer = await post(createTestApp(), gzipSync(body, { level: 1 }), { "content-encoding": "gzip" });
    expect(answer.status).toBe(422);
    const { errors } = await readProblem(answer);
    expect(errors).toHaveLength(1);
    expect(errors[0]?.detail).toMatch(
      /2000000 values|more values than are read here|may have up to 1000 test cases/,
    );
    expect(process.memoryUsage().rss - before).toBeLessThan(700 * 1024 * 1024);
  });
});

describe("any tests at all", () => {
  const names = [
    "inputs",
    "outputs",
    "input",
    "output",
    "fn_name",
    "test_cases",
    "public_test_cases",
    "type",
    "metadata",
    "test",
    "entry_point",
    "assert_code",
    "stdin",
  ];
  const leaf = fc.oneof(
    fc.string(),
    fc.constantFrom("stdin", "f", "[]", "{}", "assert f()", "[{}]", "", "def test_x(): assert 1"),
    fc.integer(),
    fc.constant(null),
    fc.boolean(),
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie("tree"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...names), tie("tree"), { maxKeys: 4 }),
      tie("tree").map((value) => JSON.stringify(value)),
    ),
  }));

  it("are read or refused with a reason, and never throw", () => {
    let read_ = 0;
    fc.assert(
      fc.property(tree, (tests) => {
        const reading = read(tests);
        if (reading.kind === "ok") read_ += 1;
        else expect(reading.problems.length).toBeGreaterThan(0);
      }),
      { numRuns: 5_000, seed: 61 },
    );
    expect(read_, "some are read").toBeGreaterThan(0);
  });
});
