import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Fault } from "../../functions/rewards/faults.ts";
import { grade } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { lost, type Script, type Step, type Turn } from "./scripted-workers.ts";
import { createVirtualClock } from "./virtual-clock.ts";

/** What may happen at a case's turn. `well` does what the program would do. */
const mishaps = {
  well: null,
  lost: { kind: "throw", error: lost() },
  lostBefore: { kind: "throw_before", error: lost() },
  protocol: { kind: "throw", error: new Fault("supervisor_protocol", "bad frame") },
  cut: { kind: "stop" },
  halfDone: { kind: "stop", summary: "completed" },
  superseded: { kind: "stop", summary: "superseded" },
  deadline: { kind: "stop", summary: "deadline" },
  tooLarge: { kind: "stop", summary: "too_large" },
  starved: { kind: "end", end: { kind: "starved", detail: "why" } },
  isolation: { kind: "end", end: { kind: "isolation_failed", detail: "why" } },
} as const satisfies Record<string, Step | null>;

const startMs = 1_700_000_000_000;

type Mishap = keyof typeof mishaps;

/** What a program prints is decided by its name and the input alone, so there is one right reward for it. */
function printsRightly(name: number, input: number): boolean {
  return (name * 7 + input * 3) % 5 !== 0;
}

function rightReward(name: number, cases: number): number {
  const passed = Array.from({ length: cases }, (_, input) => printsRightly(name, input)).filter(
    Boolean,
  ).length;
  return passed / cases;
}

const scenario = fc.record({
  programs: fc.integer({ min: 1, max: 24 }),
  cases: fc.integer({ min: 1, max: 4 }),
  maxWorkers: fc.integer({ min: 1, max: 3 }),
  slots: fc.integer({ min: 1, max: 3 }),
  /** The mishap of each turn, in the order of turns; those beyond are well. */
  mishaps: fc.array(
    fc.oneof(
      { weight: 6, arbitrary: fc.constant("well" as const) },
      fc.constantFrom(...(Object.keys(mishaps) as Mishap[])),
    ),
    { maxLength: 80 },
  ),
  /** How long each turn takes: what waits behind a slow one is handed over. */
  delaysMs: fc.array(fc.constantFrom(0, 0, 20, 300), { maxLength: 80 }),
  wakesEarlyMs: fc.constantFrom(0, 1),
});

describe("whatever happens to workers", () => {
  it("a reward is right or absent, and absent only where a fault is told", async () => {
    await fc.assert(
      fc.asyncProperty(scenario, async (plan) => {
        let turn = 0;
        const clock = createVirtualClock(startMs, plan);
        const script: Script = async ({ job, input }: Turn) => {
          const mishap = mishaps[plan.mishaps[turn] ?? "well"];
          const delayMs = plan.delaysMs[turn++] ?? 0;
          if (delayMs > 0) await clock.sleep(delayMs);
          if (mishap !== null) return mishap;
          const name = job.source.trim();
          return {
            kind: "print",
            stdout: printsRightly(Number(name.slice(1)), Number(input)) ? input : "99",
          };
        };
        const names = Array.from({ length: plan.programs }, (_, index) => `p${index}`);
        const { rewards, results } = await grade(batchOf([...names, "p0"], echoTask(plan.cases)), {
          ...plan,
          clock,
          script,
        });
        expect(rewards).toHaveLength(plan.programs + 1);
        expect(clock.nowMs() - startMs, "none waits for the deadline").toBeLessThan(50_000);
        for (const [index, reward] of rewards.entries()) {
          const name = index < plan.programs ? index : 0;
          if (reward === null) expect(results[index]?.kind).toBe("fault");
          else expect(reward).toBe(rightReward(name, plan.cases));
        }
        expect(rewards.at(-1)).toBe(rewards[0]);
        const troubled = plan.mishaps.slice(0, turn).some((mishap) => mishap !== "well");
        if (!troubled) expect(rewards).not.toContain(null);
      }),
      { numRuns: 400 },
    );
  });
});
