import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { scoreVerdicts } from "../../functions/grading/reward.ts";
import {
  type JudgedOutcome,
  judgeCase,
  type ProgramEnd,
  type Verdict,
} from "../../functions/grading/verdict.ts";
import type { CaseEnd, CaseOutcome } from "../../functions/rewards/ports.ts";

const matchesOne = (said: string) => said === "1";

describe("the verdict on a case", () => {
  it.each<readonly [end: ProgramEnd, said: string | null, verdict: Verdict]>([
    [{ kind: "exited", exitCode: 0 }, "1", { kind: "passed" }],
    [{ kind: "exited", exitCode: 0 }, "2", { kind: "wrong_output" }],
    [{ kind: "exited", exitCode: 0 }, "", { kind: "wrong_output" }],
    [{ kind: "exited", exitCode: 0 }, null, { kind: "wrong_output" }],
    [{ kind: "exited", exitCode: 1 }, "1", { kind: "runtime_error", exitCode: 1 }],
    [{ kind: "exited", exitCode: 255 }, null, { kind: "runtime_error", exitCode: 255 }],
    [{ kind: "signaled", signal: "SIGSEGV" }, "1", { kind: "signaled", signal: "SIGSEGV" }],
    [{ kind: "time_limit" }, "1", { kind: "time_limit" }],
    [{ kind: "memory_limit" }, "1", { kind: "memory_limit" }],
    [{ kind: "output_limit" }, "1", { kind: "output_limit" }],
  ])("for the end %j with the output %j is %j", (end, said, verdict) => {
    expect(judgeCase({ end, said }, matchesOne)).toEqual(verdict);
  });

  it("compares no output of a program that failed", () => {
    const fail = () => {
      throw new Error("compared");
    };
    expect(judgeCase({ end: { kind: "time_limit" }, said: "1" }, fail).kind).toBe("time_limit");
    expect(judgeCase({ end: { kind: "exited", exitCode: 3 }, said: "1" }, fail).kind).toBe("runtime_error");
  });

  it("is there for every end that says something of the program, and for no other", () => {
    expectTypeOf<ProgramEnd>().toExtend<CaseEnd>();
    expectTypeOf<Exclude<CaseEnd, ProgramEnd>["kind"]>().toEqualTypeOf<
      "invalid_test" | "starved" | "isolation_failed"
    >();
    type Said = Pick<CaseOutcome, "end"> & { said: string };
    expectTypeOf<Said & { end: ProgramEnd }>().toExtend<JudgedOutcome>();
    expectTypeOf<Said>().not.toExtend<JudgedOutcome>();
  });
});

describe("the reward", () => {
  const passed: Verdict = { kind: "passed" };
  const failures: readonly Verdict[] = [
    { kind: "wrong_output" },
    { kind: "runtime_error", exitCode: 1 },
    { kind: "signaled", signal: "SIGKILL" },
    { kind: "time_limit" },
    { kind: "memory_limit" },
    { kind: "output_limit" },
  ];

  it.each<readonly [verdicts: readonly Verdict[], reward: number, passed: number]>([
    [[passed], 1, 1],
    [[passed, passed, passed], 1, 3],
    [[passed, ...failures.slice(0, 2)], 1 / 3, 1],
    [failures, 0, 0],
  ])("for %j is %d", (verdicts, reward, count) => {
    expect(scoreVerdicts(verdicts)).toEqual({ reward, passed: count });
  });

  it("is the share that passed, in [0, 1], in any order", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(passed, ...failures), { minLength: 1, maxLength: 1_000 }),
        (verdicts) => {
          const score = scoreVerdicts(verdicts);
          expect(score).toEqual(scoreVerdicts([...verdicts].reverse()));
          expect(score.reward * verdicts.length).toBeCloseTo(score.passed, 9);
          expect(score.reward >= 0 && score.reward <= 1).toBe(true);
          expect(score.reward === 1).toBe(verdicts.every((verdict) => verdict === passed));
        },
      ),
      { numRuns: 300, seed: 31 },
    );
  });

  it("is none, rather than 0, without verdicts", () => {
    expect(() => scoreVerdicts([])).toThrow("at least one test case");
  });
});
