import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Scoring, scoreVerdicts } from "../../functions/grading/reward.ts";
import type { Verdict } from "../../functions/grading/verdict.ts";

const passed: Verdict = { kind: "passed" };
const failures: readonly (Verdict | null)[] = [
  { kind: "wrong_output" },
  { kind: "runtime_error", exitCode: 1 },
  { kind: "signaled", signal: "SIGKILL" },
  { kind: "time_limit" },
  { kind: "memory_limit" },
  { kind: "output_limit" },
  null,
];

const fraction: Scoring["rule"] = { kind: "fraction" };
const allOrNothing: Scoring["rule"] = { kind: "all_or_nothing" };
const threshold = (share: number): Scoring["rule"] => ({ kind: "threshold", threshold: share });

/** Verdicts from a word: `+` passed, `-` wrong, `.` not run. */
function verdictsOf(word: string): (Verdict | null)[] {
  return [...word].map((mark) => (mark === "+" ? passed : mark === "-" ? { kind: "wrong_output" } : null));
}

describe("the reward", () => {
  it.each<[string, Scoring["rule"], readonly number[] | null, number]>([
    ["+++", fraction, null, 1],
    ["++-", fraction, null, 2 / 3],
    ["---", fraction, null, 0],
    ["+-.", fraction, null, 1 / 3],
    ["+++", allOrNothing, null, 1],
    ["++-", allOrNothing, null, 0],
    ["+-.", allOrNothing, null, 0],
    ["++.", allOrNothing, null, 0],
    ["++-", threshold(0.5), null, 1],
    ["+--", threshold(0.5), null, 0],
    ["+-", threshold(0.5), null, 1],
    ["+++-------", threshold(0.3), null, 1],
    ["+++++++---", threshold(0.7), null, 1],
    ["+++++++---", threshold(0.71), null, 0],
    ["+++", threshold(1), null, 1],
    ["++-", threshold(1), null, 0],
    ["--", threshold(0.001), null, 0],
    ["+-", fraction, [3, 1], 0.75],
    ["-+", fraction, [3, 1], 0.25],
    ["+-", fraction, [0, 1], 0],
    ["-+", fraction, [0, 1], 1],
    ["++", fraction, [0.1, 0.2], 1],
    ["+++", fraction, [0.1, 0.2, 0.3], 1],
    ["+-", threshold(0.75), [3, 1], 1],
    ["-+", threshold(0.75), [3, 1], 0],
    ["++-", threshold(0.3), [0.1, 0.2, 0.7], 1],
    ["++++++++--", threshold(0.8), new Array(10).fill(0.1), 1],
    ["+-", threshold(0.75), [0.6, 0.2], 1],
  ])("for %s by %j, weighed %j, is %d", (word, rule, weights, reward) => {
    expect(scoreVerdicts(verdictsOf(word), { rule, weights }).reward).toBe(reward);
  });

  it("says how many passed, whatever they weigh", () => {
    const scoring: Scoring = { rule: fraction, weights: [5, 0, 1, 1] };
    expect(scoreVerdicts(verdictsOf("++-."), scoring).passed).toBe(2);
  });

  it("is none, rather than 0, without verdicts or with weights that don't fit", () => {
    expect(() => scoreVerdicts([])).toThrow("at least one test case");
    expect(() => scoreVerdicts([passed], { rule: fraction, weights: [0] })).toThrow("weights");
    expect(() => scoreVerdicts([passed], { rule: fraction, weights: [1, 1] })).toThrow("weights");
  });
});

const rules = fc.oneof(
  fc.constant(fraction),
  fc.constant(allOrNothing),
  fc.double({ min: 1e-300, max: 1, noNaN: true }).map(threshold),
);
const weight = fc.oneof(
  fc.double({ min: 0, max: 1e6, noNaN: true }),
  fc.constantFrom(0, 1, 1e6, 5e-324, 1e-300, 0.1),
);
const graded = fc
  .integer({ min: 1, max: 40 })
  .chain((length) =>
    fc.tuple(
      fc.array(fc.constantFrom(passed, passed, ...failures), { minLength: length, maxLength: length }),
      fc.option(
        fc
          .array(weight, { minLength: length, maxLength: length })
          .filter((weights) => weights.some((one) => one > 0)),
      ),
      rules,
      fc.nat(),
    ),
  );
const runs = { numRuns: 3_000, seed: 93 };

describe("the reward for any verdicts", () => {
  it("is finite and in [0, 1]", () => {
    fc.assert(
      fc.property(graded, ([verdicts, weights, rule]) => {
        const { reward } = scoreVerdicts(verdicts, { rule, weights });
        expect(Number.isFinite(reward) && reward >= 0 && reward <= 1).toBe(true);
      }),
      runs,
    );
  });

  it("is exactly 1 when all passed, and exactly 0 when none did", () => {
    fc.assert(
      fc.property(graded, ([verdicts, weights, rule]) => {
        const all = verdicts.map(() => passed);
        expect(scoreVerdicts(all, { rule, weights }).reward).toBe(1);
        const none = verdicts.map(() => null);
        expect(scoreVerdicts(none, { rule, weights }).reward).toBe(0);
      }),
      runs,
    );
  });

  it("is never less when one more test case has passed", () => {
    fc.assert(
      fc.property(graded, ([verdicts, weights, rule, choice]) => {
        const better = verdicts.with(choice % verdicts.length, passed);
        const scoring = { rule, weights };
        expect(scoreVerdicts(better, scoring).reward).toBeGreaterThanOrEqual(
          scoreVerdicts(verdicts, scoring).reward,
        );
      }),
      runs,
    );
  });

  it("is 1 by no rule when it is not 1 by a lower threshold", () => {
    fc.assert(
      fc.property(graded, fc.double({ min: 0.01, max: 1, noNaN: true }), ([verdicts, weights], share) => {
        const low = scoreVerdicts(verdicts, { rule: threshold(share / 2), weights }).reward;
        expect(low).toBeGreaterThanOrEqual(
          scoreVerdicts(verdicts, { rule: threshold(share), weights }).reward,
        );
        expect(low).toBeGreaterThanOrEqual(
          scoreVerdicts(verdicts, { rule: allOrNothing, weights: null }).reward,
        );
      }),
      runs,
    );
  });

  it("with equal weights is the one without", () => {
    fc.assert(
      fc.property(graded, ([verdicts, , rule]) => {
        const weights = verdicts.map(() => 1);
        expect(scoreVerdicts(verdicts, { rule, weights })).toEqual(
          scoreVerdicts(verdicts, { rule, weights: null }),
        );
      }),
      runs,
    );
  });
});
