import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SampleResult } from "../../functions/rewards/batch.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { grade } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { lost, obey, type Script, type Step } from "./scripted-workers.ts";

const failFast = {
  scoring: { rule: { kind: "all_or_nothing" }, weights: null },
  failFast: true,
} as const;

/** `right from 3 to 7`: prints what is expected for these inputs, and something else for others. */
const rightWithin: Script = (turn) => {
  const [, from = 0, to = 0] = (/(\d+) to (\d+)/.exec(turn.job.source) ?? []).map(Number);
  const input = Number(turn.input);
  return input >= from && input < to
    ? { kind: "print", stdout: turn.input }
    : { kind: "print", stdout: "no" };
};

function verdictsOf(result: SampleResult | undefined): string[] {
  if (result?.kind !== "graded") throw new Error(`not graded: ${result?.kind}`);
  return result.cases.map(({ verdict }) => verdict?.kind ?? "not_run");
}

describe("a program that fails fast", () => {
  it("runs all its cases when it is right", async () => {
    const { rewards, results, workers } = await grade(
      batchOf(["right 0 to 100"], echoTask(100, 0, failFast)),
      {
        script: rightWithin,
      },
    );
    expect(rewards).toEqual([1]);
    expect(results[0]).toMatchObject({ passed: 100 });
    expect(new Set(verdictsOf(results[0]))).toEqual(new Set(["passed"]));
    expect(workers.chunks.length, "in a few portions").toBeLessThanOrEqual(6);
  });

  it.each([
    ["its first case", "right 1 to 100", 0, 4],
    ["a case of the second portion", "right 0 to 9", 9, 16],
    ["its last case", "right 0 to 99", 99, 100],
  ])("is not handed out any further once it has failed: %s", async (_name, source, passed, most) => {
    const { rewards, results, workers, usage } = await grade(batchOf([source], echoTask(100, 0, failFast)), {
      script: rightWithin,
    });
    expect(rewards).toEqual([0]);
    expect(workers.turns.length).toBeLessThanOrEqual(most);
    const verdicts = verdictsOf(results[0]);
    expect(verdicts).toHaveLength(100);
    expect(results[0]).toMatchObject({ passed });
    expect(verdicts.filter((verdict) => verdict === "passed")).toHaveLength(passed);
    expect(verdicts.filter((verdict) => verdict === "wrong_output")).toHaveLength(1);
    expect(verdicts.filter((verdict) => verdict === "not_run")).toHaveLength(99 - passed);
    expect(usage.programsRun).toBe(1);
  });

  it.each([["crash"], ["slow"], ["fat"], ["loud"], ["segv"]])(
    "stops at any verdict that isn't passed: %s",
    async (source) => {
      const { rewards, workers } = await grade(batchOf([source], echoTask(50, 0, failFast)));
      expect(rewards).toEqual([0]);
      expect(workers.turns.length).toBeLessThanOrEqual(4);
    },
  );

  it("is a syntax error or no program as ever", async () => {
    const samples = [{ task: echoTask(50, 0, failFast), completion: "none" }];
    const { rewards, results } = await grade(batchOf(["broken"], echoTask(50, 0, failFast)));
    expect([rewards, results[0]]).toMatchObject([[0], { kind: "syntax_error", total: 50 }]);
    expect((await grade(batchOf([], undefined, { samples }))).results[0]).toMatchObject({
      kind: "no_program",
      total: 50,
    });
  });

  it("leaves programs of other tasks alone", async () => {
    const [fast, slow] = [echoTask(40, 0, failFast), echoTask(40)];
    const completion = (source: string) => `\`\`\`python\n${source}\n\`\`\``;
    const samples = [
      { task: fast, completion: completion("wrong") },
      { task: slow, completion: completion("wrong") },
      { task: fast, completion: completion("right") },
      { task: slow, completion: completion("right") },
    ];
    const { rewards, results } = await grade(batchOf([], fast, { samples }));
    expect(rewards).toEqual([0, 0, 1, 1]);
    expect(verdictsOf(results[0])).toContain("not_run");
    expect(verdictsOf(results[1])).toEqual(new Array(40).fill("wrong_output"));
  });

  it("has its reward even if another of its cases meets a fault: one failure decides", async () => {
    const script: Script = (turn) =>
      turn.input === "1"
        ? { kind: "print", stdout: "no" }
        : { kind: "end", end: { kind: "starved", detail: "why" } };
    const { rewards } = await grade(batchOf(["odd"], echoTask(4, 0, failFast)), { script });
    expect(rewards).toEqual([0]);
  });

  it("has none when a fault keeps it from being judged and nothing failed", async () => {
    const script: Script = (turn) =>
      turn.input === "30" ? { kind: "end", end: { kind: "starved", detail: "why" } } : obey(turn);
    const { rewards, results } = await grade(batchOf(["right"], echoTask(50, 0, failFast)), { script });
    expect(rewards).toEqual([null]);
    expect(results[0]).toMatchObject({ kind: "fault", fault: { code: "starved" } });
  });

  it("says which test cases were not run when not all are chosen", async () => {
    const { results } = await grade(batchOf(["wrong"], echoTask(50, 0, { ...failFast, maxTests: 10 })));
    const cases = results[0]?.kind === "graded" ? results[0].cases : [];
    const numbers = cases.map(({ caseNumber }) => caseNumber ?? -1);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    expect(numbers).toHaveLength(10);
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(0);
  });
});

const mishaps: readonly (Step | null)[] = [
  null,
  null,
  null,
  { kind: "throw", error: lost() },
  { kind: "throw_before", error: lost() },
  { kind: "throw", error: new Fault("supervisor_protocol", "bad frame") },
  { kind: "stop" },
  { kind: "stop", summary: "superseded" },
  { kind: "stop", summary: "too_large" },
  { kind: "stop", started: true, summary: "superseded" },
  { kind: "stop", summary: "deadline" },
  { kind: "end", end: { kind: "starved", detail: "why" } },
  { kind: "end", end: { kind: "isolation_failed", detail: "why" } },
];

const scenario = fc.record({
  /** Of each program, the input that it gets wrong; beyond the cases: none. */
  wrongInputs: fc.array(fc.nat(60), { minLength: 1, maxLength: 10 }),
  cases: fc.integer({ min: 1, max: 40 }),
  maxWorkers: fc.integer({ min: 1, max: 3 }),
  slots: fc.integer({ min: 1, max: 3 }),
  mishaps: fc.array(fc.nat(mishaps.length - 1), { maxLength: 60 }),
});

describe("whatever happens to workers", () => {
  it("the reward of a program that fails fast is right or absent", async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async ({ wrongInputs, cases, ...plan }) => {
        let turn = 0;
        const script: Script = ({ job, input }) => {
          const mishap = mishaps[plan.mishaps[turn++] ?? 0];
          if (mishap) return mishap;
          const wrongInput = job.source.trim().split(" ")[1];
          return { kind: "print", stdout: input === wrongInput ? "no" : input };
        };
        const sources = wrongInputs.map((input, index) => `p${index} ${input}`);
        const { rewards, results } = await grade(batchOf(sources, echoTask(cases, 0, failFast)), {
          ...plan,
          script,
        });
        for (const [index, reward] of rewards.entries()) {
          const isWrong = (wrongInputs[index] ?? 0) < cases;
          if (reward === null) expect(results[index]?.kind).toBe("fault");
          else expect(reward).toBe(isWrong ? 0 : 1);
        }
        if (plan.mishaps.slice(0, turn).every((mishap) => mishap < 3)) expect(rewards).not.toContain(null);
      }),
      { numRuns: 400 },
    );
  });
});
