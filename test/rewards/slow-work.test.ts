/** What waits behind slow cases, and the workers that it is worth. */
import { describe, expect, it } from "vitest";
import type { SampleResult } from "../../functions/rewards/batch.ts";
import { grade } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { endCase, lost, obey, type Script } from "./scripted-workers.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

const startMs = 1_700_000_000_000;

/** Each program says how long its cases take, after they have started. */
async function gradeTimed(
  sources: readonly string[],
  cases = 1,
  meets: (turn: Parameters<Script>[0]) => boolean = () => false,
) {
  const clock = createVirtualClock();
  const endedAtMs: number[] = [];
  const results: SampleResult[] = [];
  const script: Script = (turn) => {
    const takesMs = Number(turn.job.source.trim().split(" ").at(-1));
    const { job, caseIndex, input } = turn;
    const run = async function* () {
      yield { kind: "case_started", programId: job.id, caseIndex } as const;
      await clock.sleep(takesMs);
      if (meets(turn)) throw lost();
      yield endCase(job, caseIndex, { kind: "exited", exitCode: 0 }, input);
    };
    return { kind: "events", events: run() };
  };
  const onSample = (index: number, result: SampleResult) => {
    expect(results[index], "each sample has one result").toBeUndefined();
    results[index] = result;
    endedAtMs[index] = clock.nowMs() - startMs;
  };
  const done = await grade(batchOf(sources, echoTask(cases)), {
    clock,
    script,
    hooks: { onSample },
    maxWorkers: 2,
  });
  return { ...done, results, endedAtMs, tookMs: clock.nowMs() - startMs };
}

const named = (count: number, takesMs: number) =>
  Array.from({ length: count }, (_, index) => `right ${index} ${takesMs}`);

describe("a small batch", () => {
  it("that starts with a slow program has its other lines long before that one's", async () => {
    const { rewards, endedAtMs, usage } = await gradeTimed(["slow 1800", ...named(12, 20)]);
    expect(rewards.every((reward) => reward === 1)).toBe(true);
    expect(usage.workers).toBe(2);
    expect(Math.max(...endedAtMs.slice(1))).toBeLessThan(700);
    expect(endedAtMs[0]).toBe(1_800);
  });

  it("of slow programs is shared", async () => {
    const { rewards, tookMs, usage } = await gradeTimed(named(16, 300));
    expect(rewards.every((reward) => reward === 1)).toBe(true);
    expect(usage.workers).toBe(2);
    expect(tookMs).toBeLessThan(0.65 * 16 * 300);
  });

  it("of quick programs does with one worker, and asks for no other", async () => {
    const { rewards, workers } = await gradeTimed(named(16, 40));
    expect(rewards.every((reward) => reward === 1)).toBe(true);
    expect(workers.acquires).toHaveLength(1);
    expect(new Set(workers.turns).size, "nothing is run twice").toBe(workers.turns.length);
  });

  it("of one slow case has nothing to share", async () => {
    const { workers } = await gradeTimed(["slow 1800"]);
    expect(workers.acquires).toHaveLength(1);
  });
});

describe("cases that were handed over", () => {
  it("are run by whoever comes to them first, and no longer by the other", async () => {
    const { workers, tookMs } = await gradeTimed(["slow 1800", ...named(12, 200)]);
    const runs = workers.turns.filter((name) => !name.startsWith("slow"));
    expect(
      runs.length - new Set(runs).size,
      "at most the one that ran when the other had ended",
    ).toBeLessThan(3);
    expect(tookMs).toBeLessThan(2_500);
  });

  it.each(["w1", "w2"])("survive the loss of either worker (%s)", async (dies) => {
    let losses = 0;
    const sources = ["slow 1000", ...named(12, 160)];
    const { rewards } = await gradeTimed(sources, 2, ({ workerId }) => {
      const isLost = workerId === dies && losses === 0;
      if (isLost) losses += 1;
      return isLost;
    });
    expect(losses).toBe(1);
    expect(rewards).toEqual(sources.map(() => 1));
  });

  it("end their workers as others do: the program is found out", async () => {
    const { rewards, results } = await gradeTimed(["slow 1000", "bad 160", ...named(11, 160)], 1, ({ job }) =>
      job.source.startsWith("bad"),
    );
    expect(rewards.filter((reward) => reward === 1)).toHaveLength(12);
    expect(results[1]).toMatchObject({ fault: { code: "worker_lost", retryable: false } });
  });
});

describe("a worker that can't be reached", () => {
  const deadlineMs = 600_000;
  const unreachable = (clock: VirtualClock): Script => {
    return async (turn) => {
      if (turn.workerId === "w1") return { kind: "hang", unstarted: true };
      await clock.sleep(20);
      return obey(turn);
    };
  };

  it.each([2, 4])("does not hold up what it was given, as long as others can (%i)", async (maxWorkers) => {
    const clock = createVirtualClock();
    const sources = named(64, 0);
    const { rewards } = await grade(batchOf(sources, echoTask(2), { deadlineMs }), {
      clock,
      script: unreachable(clock),
      maxWorkers,
    });
    expect(rewards).toEqual(sources.map(() => 1));
    expect(clock.nowMs() - startMs).toBeLessThan(10_000);
  });
});
