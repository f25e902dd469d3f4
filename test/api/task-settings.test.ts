import { describe, expect, it } from "vitest";
import { RewardsAnswer } from "../../functions/api/answer-schemas.ts";
import { createTestApp, post, readProblem, type TestAppOptions } from "./test-app.ts";

const cases = ["0", "1", "2", "3"].map((text) => ({ input: text, output: text }));

function requestFor(task: Record<string, unknown>, sources = ["right"]) {
  const samples = sources.map((source) => ({ task: "t", completion: `\`\`\`python\n${source}\n\`\`\`` }));
  return { tasks: { t: task }, samples };
}

async function answerTo(task: Record<string, unknown>, sources?: string[], options?: TestAppOptions) {
  const testApp = createTestApp(options);
  const answer = await post(testApp, requestFor(task, sources));
  const body = await answer.json();
  expect(answer.status, JSON.stringify(body)).toBe(200);
  return { ...RewardsAnswer.parse(body), testApp };
}

/** A program that prints this, whatever it reads. */
const printing = (stdout: string): TestAppOptions => ({ script: () => ({ kind: "print", stdout }) });
/** Right for inputs below 2. */
const halfRight: TestAppOptions = {
  script: ({ input }) => ({ kind: "print", stdout: Number(input) < 2 ? input : "no" }),
};

describe("a task's comparison", () => {
  it.each<[string, Record<string, unknown>, string, string, number]>([
    ["json by default", {}, "[1,2]", "[1, 2]", 1],
    ["json", { comparison: { type: "json" } }, "0.5", "0.5000001", 0],
    [
      "json within a tolerance",
      { comparison: { type: "json", tolerance: { absolute: 1e-6 } } },
      "0.5",
      "0.5000001",
      1,
    ],
    [
      "a tolerance is of one kind if one is given",
      { comparison: { type: "json", tolerance: { relative: 1e-6 } } },
      "0.0",
      "1e-9",
      0,
    ],
    ["text", { comparison: { type: "text" } }, "a b", "a b \n", 1],
    ["text, strict", { comparison: { type: "text", strict: true } }, "a b", "a b\n", 0],
    ["tokens", { comparison: { type: "tokens" } }, "a b", "a\nb", 1],
    ["numbers, within a millionth by default", { comparison: { type: "numbers" } }, "0.5", "0.5000001", 1],
    ["numbers", { comparison: { type: "numbers", tolerance: { absolute: 0.1 } } }, "0.5", "0.55", 1],
    ["lines_unordered", { comparison: { type: "lines_unordered" } }, "a\nb", "b\na\n", 1],
    ["tokens_unordered", { comparison: { type: "tokens_unordered" } }, "a b", "b a", 1],
  ])("is kept to: %s", async (_name, task, output, stdout, reward) => {
    const { rewards } = await answerTo(
      { test_cases: [{ input: "", output }], ...task },
      ["x"],
      printing(stdout),
    );
    expect(rewards).toEqual([reward]);
  });

  it("is text for tests of a dataset, which rarely are JSON", async () => {
    const { rewards } = await answerTo(
      { tests: [{ input: "", output: "YES\n1 2" }] },
      ["x"],
      printing("YES \n1 2\n"),
    );
    expect(rewards).toEqual([1]);
  });

  it("may be another one for them", async () => {
    const task = { tests: [{ input: "", output: "[1,2]" }], comparison: { type: "json" } };
    expect((await answerTo(task, ["x"], printing("[1, 2]"))).rewards).toEqual([1]);
  });
});

describe("a task's limits", () => {
  it.each<[Record<string, unknown>, object]>([
    [{ time_limit: 1.5 }, { timeMs: 1_500, memoryMib: 192 }],
    [
      { time_limit: "2 seconds", memory_limit: "256 megabytes" },
      { timeMs: 2_000, memoryMib: 256 },
    ],
    [
      { time_ms: 700, memory_limit_bytes: 268_435_456 },
      { timeMs: 700, memoryMib: 256 },
    ],
    [
      { time_limit: null, memory_limit: null, memory_limit_bytes: null },
      { timeMs: 2_000, memoryMib: 192 },
    ],
    [
      { memory_limit: 64.5, output_bytes: 10 },
      { memoryMib: 65, outputBytes: 10 },
    ],
    [{ time_ms: 700, time_limit: null }, { timeMs: 700 }],
  ])("%j are %j", async (limits, wanted) => {
    const { testApp } = await answerTo({ test_cases: cases, limits });
    expect(testApp.workers.chunks[0]?.chunk.programs[0]?.limits).toMatchObject(wanted);
  });
});

describe("a task's scoring", () => {
  it.each<[Record<string, unknown> | undefined, number]>([
    [undefined, 0.5],
    [{}, 0.5],
    [{ type: "fraction" }, 0.5],
    [{ type: "all_or_nothing" }, 0],
    [{ type: "threshold", threshold: 0.5 }, 1],
    [{ type: "threshold", threshold: 0.51 }, 0],
    [{ weights: [3, 3, 1, 1] }, 0.75],
    [{ type: "threshold", threshold: 0.75, weights: [3, 3, 1, 1] }, 1],
    [{ type: "all_or_nothing", fail_fast: true }, 0],
  ])("%j makes %d of two passed cases in four", async (scoring, reward) => {
    const task = { test_cases: cases, ...(scoring === undefined ? {} : { scoring }) };
    const { rewards, results } = await answerTo(task, ["x"], halfRight);
    expect(rewards).toEqual([reward]);
    expect(results?.[0]).toMatchObject({ reward, status: "graded", total: 4 });
  });

  it("runs no more tests than asked for, and says which they are", async () => {
    const many = Array.from({ length: 30 }, (_, index) => ({ input: `${index}`, output: `${index}` }));
    const task = { test_cases: many, scoring: { max_tests: 5 } };
    const { results, testApp } = await answerTo(task, ["right", "right 2"]);
    const [first, second] = results ?? [];
    expect(first).toMatchObject({ passed: 5, total: 5 });
    const numbersOf = (result: typeof first) => result?.verdicts?.map((verdict) => verdict.case);
    expect(numbersOf(first)).toEqual(numbersOf(second));
    const inputs = testApp.workers.chunks[0]?.chunk.programs[0]?.inputs;
    expect(inputs).toEqual(numbersOf(first)?.map(String));
    const again = await answerTo(task, ["wrong"]);
    expect(numbersOf(again.results?.[0])).toEqual(numbersOf(first));
  });

  it("tells case numbers where so many tests are asked for that all are run, and none unasked", async () => {
    const numbersOf = async (scoring: object) => {
      const { results } = await answerTo({ test_cases: cases, scoring });
      return results?.[0]?.verdicts?.map((verdict) => (verdict as { case?: number }).case);
    };
    expect(await numbersOf({ max_tests: 4 })).toEqual([0, 1, 2, 3]);
    expect(await numbersOf({})).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("says what was not run after a failure, without measures", async () => {
    const many = Array.from({ length: 12 }, (_, index) => ({ input: `${index}`, output: `${index}` }));
    const task = { test_cases: many, scoring: { type: "all_or_nothing", fail_fast: true } };
    const { results } = await answerTo(task, ["wrong"]);
    expect(results?.[0]).toMatchObject({ reward: 0, status: "graded", passed: 0, total: 12 });
    expect(results?.[0]?.verdicts?.[0]).toMatchObject({ verdict: "wrong_output" });
    expect(results?.[0]?.verdicts?.at(-1)).toEqual({ verdict: "not_run" });
  });

  it("of one task doesn't touch another of the same tests", async () => {
    const scorings = [
      {},
      { type: "all_or_nothing" },
      { type: "threshold", threshold: 0.4 },
      { max_tests: 4, weights: [1, 0, 0, 0] },
    ];
    const completion = "```python\nx\n```";
    const samples = scorings.map((scoring) => ({ task: { test_cases: cases, scoring }, completion }));
    const answer = await post(createTestApp(halfRight), { samples });
    expect(await answer.json()).toMatchObject({
      rewards: [0.5, 0, 1, 1],
      usage: { programs_run: 4, duplicates: 0 },
    });
  });
});

describe("settings that make no sense", () => {
  it.each<[string, Record<string, unknown>, string, string]>([
    ["test_cases and tests", { test_cases: cases, tests: cases }, "/tests", "has one of the two"],
    ["neither", {}, "/test_cases", "is missing; a task has it, or 'tests'"],
    [
      "a comparison of no type",
      { test_cases: cases, comparison: { tolerance: {} } },
      "/comparison/type",
      'must be "json" or "text" or',
    ],
    [
      "strict tokens",
      { test_cases: cases, comparison: { type: "tokens", strict: true } },
      "/comparison/strict",
      "not known here",
    ],
    [
      "a negative tolerance",
      { test_cases: cases, comparison: { type: "numbers", tolerance: { absolute: -1 } } },
      "/comparison/tolerance/absolute",
      "at least 0",
    ],
    [
      "a tolerance that lets all pass",
      { test_cases: cases, comparison: { type: "numbers", tolerance: { relative: 1 } } },
      "/comparison/tolerance/relative",
      "at most 0.5",
    ],
    [
      "a tolerance that is a number",
      { test_cases: cases, comparison: { type: "json", tolerance: 1e-6 } },
      "/comparison/tolerance",
      "must be an object",
    ],
    [
      "an output that can't be compared",
      { test_cases: [{ input: "", output: "nan" }], comparison: { type: "numbers" } },
      "/test_cases/0/output",
      "its word 1 is NaN",
    ],
    [
      "outputs that are all blank",
      { tests: { inputs: ["1", "2"], outputs: ["", "\n"] } },
      "/tests/outputs/0",
      "does nothing",
    ],
    [
      "a limit in two units",
      { test_cases: cases, limits: { time_ms: 100, time_limit: 1 } },
      "/limits/time_limit",
      "give one of them",
    ],
    [
      "two limits of memory",
      { test_cases: cases, limits: { memory_limit: 100, memory_limit_bytes: 1e8 } },
      "/limits/memory_limit_bytes",
      "give one of them",
    ],
    [
      "a time that is no time",
      { test_cases: cases, limits: { time_limit: "soon" } },
      "/limits/time_limit",
      'such as "2 seconds"',
    ],
    [
      "a time out of range",
      { test_cases: cases, limits: { time_limit: "2 minutes" } },
      "/limits/time_limit",
      "in ms, may be at most 60000, and is 120000",
    ],
    [
      "a time of nothing",
      { test_cases: cases, limits: { time_limit: 0 } },
      "/limits/time_limit",
      "in ms, must be at least 10",
    ],
    [
      "more memory than a worker has",
      { test_cases: cases, limits: { memory_limit: "512 megabytes" } },
      "/limits/memory_limit",
      "in MiB, may be at most 448, and is 512",
    ],
    [
      "bytes that are few",
      { test_cases: cases, limits: { memory_limit_bytes: 1000 } },
      "/limits/memory_limit_bytes",
      "in MiB, must be at least 32",
    ],
    [
      "an unknown scoring",
      { test_cases: cases, scoring: { type: "median" } },
      "/scoring/type",
      '"fraction" or "all_or_nothing"',
    ],
    [
      "a threshold without its share",
      { test_cases: cases, scoring: { type: "threshold" } },
      "/scoring/threshold",
      "is missing",
    ],
    [
      "a threshold of 0",
      { test_cases: cases, scoring: { type: "threshold", threshold: 0 } },
      "/scoring/threshold",
      "must be more than 0",
    ],
    [
      "a threshold above 1",
      { test_cases: cases, scoring: { type: "threshold", threshold: 1.1 } },
      "/scoring/threshold",
      "at most 1",
    ],
    [
      "a share without threshold",
      { test_cases: cases, scoring: { threshold: 0.5 } },
      "/scoring/threshold",
      'with the type "threshold" only',
    ],
    [
      "a weight too few",
      { test_cases: cases, scoring: { weights: [1, 1, 1] } },
      "/scoring/weights",
      "has 4 test cases, and there are 3 weights",
    ],
    [
      "a weight too few for tests",
      { tests: cases, scoring: { weights: [1] } },
      "/scoring/weights",
      "has 4 test cases",
    ],
    [
      "weights of nothing",
      { test_cases: cases, scoring: { weights: [0, 0, 0, 0] } },
      "/scoring/weights",
      "a weight above 0",
    ],
    [
      "a negative weight",
      { test_cases: cases, scoring: { weights: [1, -1, 1, 1] } },
      "/scoring/weights/1",
      "at least 0",
    ],
    [
      "a weight beyond measure",
      { test_cases: cases, scoring: { weights: [1, 1e300, 1, 1] } },
      "/scoring/weights/1",
      "at most 1000000",
    ],
    [
      "weights of all or nothing",
      { test_cases: cases, scoring: { type: "all_or_nothing", weights: [1, 1, 1, 1] } },
      "/scoring/weights",
      "make no difference",
    ],
    ["no tests at all", { test_cases: cases, scoring: { max_tests: 0 } }, "/scoring/max_tests", "at least 1"],
    [
      "half a test",
      { test_cases: cases, scoring: { max_tests: 1.5 } },
      "/scoring/max_tests",
      "a whole number",
    ],
    [
      "a share of a program that is stopped",
      { test_cases: cases, scoring: { fail_fast: true } },
      "/scoring/fail_fast",
      'with the type "all_or_nothing" only',
    ],
    [
      "a threshold of a program that is stopped",
      { test_cases: cases, scoring: { type: "threshold", threshold: 1, fail_fast: true } },
      "/scoring/fail_fast",
      "only",
    ],
    [
      "an unknown field",
      { test_cases: cases, scoring: { penalty: -1 } },
      "/scoring/penalty",
      "not known here",
    ],
    [
      "a test of a dataset that is too large",
      { tests: { inputs: ["x".repeat(1_048_577)], outputs: ["1"] } },
      "/tests/inputs/0",
      "may have 1048576 bytes",
    ],
    [
      "an output over its limit",
      { tests: JSON.stringify([{ input: "", output: "é".repeat(40_000) }]) },
      "/tests",
      "at /0/output of what it holds: may have 65536 bytes",
    ],
    [
      "a lone surrogate",
      { tests: '[{"input": "\\ud800", "output": "1"}]' },
      "/tests",
      "at /0/input of what it holds: has a lone surrogate",
    ],
  ])("are refused: %s", async (_name, task, pointer, detail) => {
    const testApp = createTestApp();
    const answer = await post(testApp, requestFor(task));
    const problem = await readProblem(answer);
    expect(problem).toMatchObject({ status: 422, code: "invalid_request" });
    expect(problem.errors).toEqual([
      { pointer: `/tasks/t${pointer}`, detail: expect.stringContaining(detail) },
    ]);
    expect(testApp.workers.acquires).toEqual([]);
  });
});
