import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createTaskPreparer, type TaskDefinition } from "../../functions/rewards/task.ts";
import { chooseTests } from "../../functions/tasks/test-choice.ts";

const hash = fc.string({ minLength: 1, maxLength: 8 });
const counts = fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 60 }));
const runs = { numRuns: 500, seed: 92 };

describe("the choice of test cases", () => {
  it("is so many different ones, in the task's order", () => {
    fc.assert(
      fc.property(hash, counts, (seed, [count, wanted]) => {
        const chosen = chooseTests(seed, count, wanted, null);
        expect(chosen).toHaveLength(Math.min(count, wanted));
        expect(chosen).toEqual([...new Set(chosen)].sort((a, b) => a - b));
        expect(chosen.every((index) => index >= 0 && index < count)).toBe(true);
        expect(chooseTests(seed, count, wanted, null)).toEqual(chosen);
      }),
      runs,
    );
  });

  it("holds every smaller one", () => {
    fc.assert(
      fc.property(hash, counts, (seed, [count, wanted]) => {
        const larger = new Set(chooseTests(seed, count, wanted + 1, null));
        for (const index of chooseTests(seed, count, wanted, null)) expect(larger.has(index)).toBe(true);
      }),
      runs,
    );
  });

  it("is another one for other tests, and favours no place", () => {
    const times = new Array<number>(20).fill(0);
    for (let task = 0; task < 1_000; task += 1) {
      for (const index of chooseTests(`task ${task}`, 20, 5, null)) times[index] = (times[index] ?? 0) + 1;
    }
    for (const count of times) expect(Math.abs(count - 250)).toBeLessThan(70);
  });

  it("takes cases that count for nothing last", () => {
    const weights = [0, 0, 1, 0, 1, 0];
    fc.assert(
      fc.property(hash, (seed) => {
        expect(chooseTests(seed, 6, 2, weights)).toEqual([2, 4]);
        expect(chooseTests(seed, 6, 3, weights)).toEqual(expect.arrayContaining([2, 4]));
      }),
      runs,
    );
  });
});

describe("a task of which not all is run", () => {
  const cases = Array.from({ length: 30 }, (_, index) => ({ input: `in ${index}`, output: `${index}` }));
  const definition: TaskDefinition = {
    tests: { kind: "stdin", cases },
    comparison: { type: "tokens" },
    limits: { timeMs: 1_000, memoryMib: 64, outputBytes: 1_000 },
    scoring: { rule: { kind: "fraction" }, weights: cases.map((_, index) => index + 1) },
    maxTests: 7,
    failFast: false,
  };
  const prepare = (change: Partial<TaskDefinition> = {}) => {
    const preparation = createTaskPreparer()({ ...definition, ...change });
    if (preparation.kind !== "ready") throw new Error("the task can't be read");
    return preparation.task;
  };

  it("is run on the same test cases for every sample, in every batch", () => {
    const first = prepare();
    expect(first.inputs).toHaveLength(7);
    expect(prepare()).toMatchObject({ contentKey: first.contentKey, inputs: first.inputs });
  });

  it("is run on the same ones whatever else of it changes", () => {
    const { inputs } = prepare();
    const changes: Partial<TaskDefinition>[] = [
      { limits: { timeMs: 5_000, memoryMib: 128, outputBytes: 9 } },
      { comparison: { type: "text", strict: false } },
      { scoring: { rule: { kind: "all_or_nothing" }, weights: null }, failFast: true },
    ];
    for (const change of changes) expect(prepare(change).inputs).toEqual(inputs);
  });

  it("keeps together what belongs to a test case", () => {
    const { inputs, matchers, scoring, caseNumbers } = prepare();
    for (const [index, caseNumber] of (caseNumbers ?? []).entries()) {
      expect(inputs[index]).toBe(`in ${caseNumber}`);
      expect(matchers[index]?.(`${caseNumber}`)).toBe(true);
      expect(scoring.weights?.[index]).toBe(caseNumber + 1);
    }
    expect(caseNumbers).toHaveLength(7);
  });

  it("is another task than with another choice, limit, comparison or scoring", () => {
    const changes: Partial<TaskDefinition>[] = [
      {},
      { maxTests: 8 },
      { maxTests: null },
      { failFast: true },
      { limits: { timeMs: 1_001, memoryMib: 64, outputBytes: 1_000 } },
      { comparison: { type: "text", strict: false } },
      { comparison: { type: "text", strict: true } },
      { comparison: { type: "numbers", tolerance: { absolute: 0, relative: 0 } } },
      { comparison: { type: "numbers", tolerance: { absolute: 1, relative: 0 } } },
      { scoring: { rule: { kind: "fraction" }, weights: null } },
      { scoring: { rule: { kind: "threshold", threshold: 0.5 }, weights: null } },
      { scoring: { rule: { kind: "threshold", threshold: 0.6 }, weights: null } },
      { tests: { kind: "stdin", cases: cases.slice(1) } },
    ];
    const keys = changes.map((change) => prepare(change).contentKey);
    expect(new Set(keys).size).toBe(changes.length);
  });

  it("says case numbers wherever a choice is asked for, also of all", () => {
    const { caseNumbers, inputs } = prepare({ maxTests: 30 });
    expect(caseNumbers).toEqual(inputs.map((_, index) => index));
    expect(prepare({ maxTests: null }).caseNumbers).toBeNull();
  });

  it("is refused for what is wrong with any test case, chosen or not", () => {
    const broken = [...cases, { input: "", output: "nan" }];
    const comparison = { type: "numbers", tolerance: { absolute: 0, relative: 0 } } as const;
    for (let maxTests = 1; maxTests <= 5; maxTests += 1) {
      const tests = { kind: "stdin", cases: broken } as const;
      const preparation = createTaskPreparer()({ ...definition, tests, comparison, maxTests });
      expect(preparation).toMatchObject({ kind: "unreadable", problems: [{ caseIndex: 30 }] });
    }
  });
});

describe("a task that a program passes by doing nothing", () => {
  const prepare = (outputs: readonly string[], comparison: TaskDefinition["comparison"]) =>
    createTaskPreparer()({
      tests: { kind: "stdin", cases: outputs.map((output) => ({ input: "", output })) },
      comparison,
      limits: { timeMs: 1_000, memoryMib: 64, outputBytes: 1_000 },
      scoring: { rule: { kind: "fraction" }, weights: null },
      maxTests: null,
      failFast: false,
    }).kind;

  it.each<[string, readonly string[], TaskDefinition["comparison"], string]>([
    ["blank outputs", ["", "\n", " \t\n"], { type: "text", strict: false }, "unreadable"],
    ["blank words", ["", " "], { type: "tokens" }, "unreadable"],
    ["blank lines", ["\n\n"], { type: "lines_unordered" }, "unreadable"],
    ["one output among blank ones", ["", "1"], { type: "text", strict: false }, "ready"],
    ["a line end that counts", ["\n"], { type: "text", strict: true }, "ready"],
    ["nothing at all, that counts", ["", ""], { type: "text", strict: true }, "unreadable"],
  ])("%s", (_name, outputs, comparison, kind) => {
    expect(prepare(outputs, comparison)).toBe(kind);
  });
});
