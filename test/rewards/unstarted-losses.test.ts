/** Workers that are lost before anything that they were given has started. */
import { describe, expect, it } from "vitest";
import { Fault } from "../../functions/rewards/faults.ts";
import { allRight, badMeets, many, others, withBad } from "./bad-programs.ts";
import { grade, startGrading } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { lost, obey, type ScriptedWorkersOptions } from "./scripted-workers.ts";

/** The first workers of the pool are dead, and nobody knows. */
function firstAreDead(count: number): ScriptedWorkersOptions {
  const isDead = (workerId: string) => Number(workerId.slice(1)) <= count;
  return {
    isDead,
    script: (turn) => (isDead(turn.workerId) ? { kind: "throw_before", error: lost() } : obey(turn)),
  };
}

describe("workers that were dead before anything started", () => {
  it.each([
    ["two, and one program", 2, ["right"]],
    ["two", 2, many],
    ["twenty, and one program", 20, ["right"]],
    ["twenty", 20, many],
  ])("cost nobody a retry: %s", async (_, dead, sources) => {
    const { rewards, workers, clock } = await grade(batchOf(sources, echoTask(2)), firstAreDead(dead));
    expect(rewards).toEqual(sources.map(() => 1));
    const broken = workers.leases.filter(({ released }) => released[0] === "broken");
    expect(broken.map(({ workerId }) => workerId)).toEqual(
      Array.from({ length: dead }, (_, index) => `w${index + 1}`),
    );
    expect(clock.nowMs() - 1_700_000_000_000).toBeLessThan(10_000);
  });

  it("are found out by a sign of life, not by the work, once one is known", async () => {
    const { workers } = await grade(batchOf(many, echoTask(2)), firstAreDead(20));
    const met = workers.leases.filter(
      ({ chunks, released }) => released[0] === "broken" && chunks.length > 0,
    );
    expect(met.length, "those that were had before the first loss").toBeLessThanOrEqual(2);
    expect(workers.signs.length).toBeGreaterThanOrEqual(18);
  });

  it("cost nobody a retry when other faults follow: one is left to each case", async () => {
    const { rewards } = await grade(batchOf(many), {
      isDead: (workerId) => workerId === "w1",
      script: ({ workerId, attempt, ...turn }) => {
        if (workerId === "w1") return { kind: "throw_before", error: lost() };
        const isFirst = turn.job.source.startsWith("right 3\n") && attempt === 1;
        return isFirst ? { kind: "throw", error: lost() } : obey({ workerId, attempt, ...turn });
      },
      maxWorkers: 1,
    });
    expect(rewards).toEqual(allRight);
  });

  it.each<["sandbox_unavailable" | "store_unavailable"]>([["sandbox_unavailable"], ["store_unavailable"]])(
    "are like those that can't be reached for now: %s",
    async (code) => {
      let failures = 0;
      const { rewards } = await grade(batchOf(many, echoTask(2)), {
        script: (turn) =>
          ++failures <= 3 ? { kind: "throw_before", error: new Fault(code, "not now") } : obey(turn),
      });
      expect(rewards).toEqual(allRight);
    },
  );

  it("are asked for ever more slowly, as long as there is time", async () => {
    const grading = startGrading(batchOf(many, echoTask(1), { deadlineMs: 30_000 }), {
      isDead: () => true,
      script: () => ({ kind: "throw_before", error: lost() }),
    });
    await grading.clock.advance(30_000);
    await expect(grading.answer).rejects.toMatchObject({ code: "sandbox_unavailable", retryable: true });
    expect(grading.workers.leases.length).toBeGreaterThan(20);
    expect(grading.workers.leases.length).toBeLessThan(300);
  });
});

describe("a program that ends its worker before the first line", () => {
  const poisoned = badMeets({ kind: "throw_before", error: lost() });
  /** Whatever else the chunk holds has not started either. */
  const beforeAnything: ScriptedWorkersOptions["script"] = (turn) => {
    const hasBad = turn.chunk.programs.some(({ source }) => source.startsWith("bad"));
    return hasBad ? { kind: "throw_before", error: lost() } : obey(turn);
  };

  it.each([
    [1, 1],
    [1, 2],
    [3, 2],
    [6, 4],
  ])(
    "ends alone, in bounded time, and takes no other with it (%i of them, %i workers)",
    async (bad, maxWorkers) => {
      const { rewards, results, workers, clock } = await grade(batchOf(withBad(bad), echoTask(2)), {
        script: beforeAnything,
        maxWorkers,
      });
      expect(others(rewards, bad)).toEqual(allRight);
      for (const result of results.slice(5, 5 + bad))
        expect(result).toMatchObject({ fault: { code: "worker_lost", retryable: false } });
      const broken = workers.leases.filter(({ released }) => released[0] === "broken");
      expect(broken.length).toBeLessThanOrEqual(16 * bad);
      expect(clock.nowMs() - 1_700_000_000_000).toBeLessThan(60_000);
    },
  );

  it("in the middle of a chunk does the same", async () => {
    const { rewards, results } = await grade(batchOf(withBad(), echoTask(2)), { script: poisoned });
    expect(others(rewards)).toEqual(allRight);
    expect(results[5]).toMatchObject({ fault: { code: "worker_lost", retryable: false } });
  });

  it("may be sent again when nothing else ran either: that is no sign of the program", async () => {
    const { results, workers } = await grade(batchOf(["bad"]), { script: poisoned });
    expect(results[0]).toMatchObject({ fault: { code: "worker_lost", retryable: true } });
    expect(workers.leases.length).toBeLessThanOrEqual(5);
  });

  it("is found among the cases of one program, too", async () => {
    const { rewards, workers } = await grade(batchOf(["bad", "right"], echoTask(40)), {
      script: (turn) => {
        const hasBad = turn.chunk.programs.some(
          ({ source, inputs }) => source.startsWith("bad") && inputs.includes("17"),
        );
        return hasBad ? { kind: "throw_before", error: lost() } : obey(turn);
      },
    });
    expect(rewards).toEqual([null, 1]);
    expect(workers.leases.length).toBeLessThan(25);
  });
});
