/** Workers that are lost together, and programs that end workers beside them. */
import { describe, expect, it } from "vitest";
import { Fault } from "../../functions/rewards/faults.ts";
import { allRight, many, withBad } from "./bad-programs.ts";
import { grade, startGrading } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { lost, obey, type Script } from "./scripted-workers.ts";
import type { VirtualClock } from "./virtual-clock.ts";

const caseMs = 400;

/** Every worker is lost at each of these moments, with what it runs then. */
function diesAt(
  clock: () => VirtualClock,
  atMs: readonly number[],
  poison: (source: string) => boolean = () => false,
) {
  const startMs = 1_700_000_000_000;
  const script: Script = async (turn) => {
    const beganMs = clock().nowMs() - startMs;
    const isHit = () => atMs.some((ms) => ms > beganMs && ms < beganMs + caseMs);
    await clock().sleep(1);
    if (poison(turn.job.source)) return { kind: "throw", error: lost() };
    if (!isHit()) {
      await clock().sleep(caseMs - 1);
      return obey(turn);
    }
    await clock().sleep(Math.max(0, Math.min(...atMs.filter((ms) => ms > beganMs)) - beganMs - 1));
    return { kind: "throw", error: lost() };
  };
  return script;
}

describe("workers that die together", () => {
  it.each([2, 3, 4])("again and again make no program poison: %i times", async (times) => {
    const atMs = Array.from({ length: times }, (_, index) => 500 + index * 5_000);
    const grading = startGrading(batchOf(many, echoTask(2), { deadlineMs: 120_000 }), {
      maxWorkers: 3,
      script: diesAt(() => grading.clock, atMs),
    });
    await grading.clock.advance(120_000);
    const { rewards } = await grading.answer;
    expect(rewards).toEqual(allRight);
  });

  it("while each runs one program alone do not make that poison", async () => {
    // All are suspects of the first incident, and run alone when the second comes.
    const sources = ["one", "two", "three"];
    const grading = startGrading(batchOf(sources, echoTask(4), { deadlineMs: 120_000 }), {
      maxWorkers: 3,
      script: diesAt(() => grading.clock, [700, 900]),
    });
    await grading.clock.advance(120_000);
    expect((await grading.answer).rewards).toEqual([1, 1, 1]);
    const broken = grading.workers.leases.filter(({ released }) => released[0] === "broken");
    expect(broken.length, "of both incidents").toBeGreaterThan(3);
  });

  it.each([
    { atMs: [100, 300], reward: 1, is: "what ended the first worker may have ended the second" },
    { atMs: [100, 300, 600], reward: null, is: "a third was lost as well" },
  ])("take both workers of the only program, at $atMs ms: $reward, as $is", async ({ atMs, reward }) => {
    const grading = startGrading(batchOf(["one"], echoTask(1), { deadlineMs: 120_000 }), {
      maxWorkers: 2,
      script: diesAt(() => grading.clock, atMs),
    });
    await grading.clock.advance(120_000);
    expect((await grading.answer).rewards).toEqual([reward]);
  });

  it("do not save a program that ends its workers: it ends, as what it is, in bounded time", async () => {
    const grading = startGrading(batchOf(withBad(4), echoTask(2), { deadlineMs: 120_000 }), {
      maxWorkers: 4,
      script: diesAt(
        () => grading.clock,
        [500],
        (source) => source.startsWith("bad"),
      ),
    });
    await grading.clock.advance(120_000);
    const { rewards } = await grading.answer;
    expect([...rewards.slice(0, 5), ...rewards.slice(9)]).toEqual(allRight);
    for (const result of grading.results.slice(5, 9))
      expect(result).toMatchObject({ fault: { code: "worker_lost", retryable: false } });
    const broken = grading.workers.leases.filter(({ released }) => released[0] === "broken");
    expect(broken.length).toBeLessThanOrEqual(4 * 4 + 4);
  });

  it("with nothing but programs that end them are no excuse for each other", async () => {
    const sources = Array.from({ length: 8 }, (_, index) => `bad ${index}`);
    const { results, workers } = await grade(batchOf(sources, echoTask(1)), {
      maxWorkers: 4,
      script: () => ({ kind: "throw", error: lost() }),
    });
    for (const result of results)
      expect(result).toMatchObject({ fault: { code: "worker_lost", retryable: false } });
    expect(workers.leases.length).toBeLessThanOrEqual(8 * 4);
  });
});

describe("a worker that is lost to a known cause", () => {
  const knownCause = () => new Fault("worker_lost", "its life is over", { isKnownCause: true });

  it.each([1, 2, 5])("costs what it ran no retry, and no good name: %i times", async (times) => {
    let left = times;
    const { rewards } = await grade(batchOf(["long"]), {
      script: (turn) => (left-- > 0 ? { kind: "throw", error: knownCause() } : obey(turn)),
    });
    expect(rewards).toEqual([1]);
  });

  it("for ever comes to an end, and may be sent again", async () => {
    const { results, workers } = await grade(batchOf(["long"]), {
      script: () => ({ kind: "throw", error: knownCause() }),
    });
    expect(results[0]).toMatchObject({ fault: { code: "worker_lost", retryable: true } });
    expect(workers.leases.length).toBeLessThan(12);
  });

  it("does not clear a program that ends workers", async () => {
    let losses = 0;
    const { results } = await grade(batchOf(["bad"]), {
      script: () => ({ kind: "throw", error: ++losses === 2 ? knownCause() : lost() }),
    });
    expect(results[0]).toMatchObject({ fault: { code: "worker_lost", retryable: false } });
    expect(losses).toBe(4);
  });
});
