import { describe, expect, it } from "vitest";
import { allRight, badMeets, many, others, withBad } from "./bad-programs.ts";
import { grade } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { lost, obey } from "./scripted-workers.ts";

describe("a worker that is lost while a program runs", () => {
  it("costs that program a second run, alone and on another worker, and the others nothing", async () => {
    const { rewards, workers, usage } = await grade(batchOf(withBad()), {
      script: badMeets({ kind: "throw", error: lost() }, 1),
    });
    expect(rewards).toEqual(withBad().map(() => 1));
    const bad = workers.chunks.filter(({ chunk }) =>
      chunk.programs.some((job) => job.source.startsWith("bad")),
    );
    expect(bad).toHaveLength(2);
    expect(bad[1]?.chunk.programs).toHaveLength(1);
    expect(bad[1]?.chunk.programs[0]?.inputs).toHaveLength(1);
    expect(bad[1]?.workerId).not.toBe(bad[0]?.workerId);
    expect(workers.leases.find((lease) => lease.workerId === bad[0]?.workerId)?.released).toEqual(["broken"]);
    expect(workers.leases.filter((lease) => lease.released[0] === "broken")).toHaveLength(1);
    expect(usage.retries).toBeGreaterThanOrEqual(1);
  });

  it("never runs a case again that has ended", async () => {
    const { rewards, workers } = await grade(batchOf(withBad(), echoTask(3)), {
      script: badMeets((turn) => (turn.input === "2" ? { kind: "throw", error: lost() } : obey(turn)), 1),
      maxWorkers: 1,
    });
    expect(rewards).toEqual(withBad().map(() => 1));
    expect(workers.turns.filter((name) => name === "bad 0 0")).toHaveLength(1);
    expect(workers.turns.filter((name) => name === "bad 0 1")).toHaveLength(1);
    expect(workers.turns.filter((name) => name === "bad 0 2")).toHaveLength(2);
    expect(new Set(workers.turns).size).toBe(workers.turns.length - 1);
  });

  it("makes every case that had started a suspect, each of which runs alone", async () => {
    const { rewards, workers } = await grade(batchOf(["right", "bad 1", "right 2", "bad 2"]), {
      script: badMeets({ kind: "throw", error: lost() }, 1),
      maxWorkers: 1,
      slots: 4,
    });
    expect(rewards).toEqual([1, 1, 1, 1]);
    const [first, ...rest] = workers.chunks.map(({ chunk }) => chunk.programs.length);
    expect(first).toBe(4);
    expect(rest.every((programs) => programs === 1)).toBe(true);
  });

  it("again and again while it ran alone, the second time within a moment: the program has no reward and isn't worth sending again", async () => {
    const { rewards, results, workers } = await grade(batchOf(withBad(), echoTask(3)), {
      script: badMeets({ kind: "throw", error: lost() }),
    });
    expect(rewards[5]).toBeNull();
    expect(results[5]).toMatchObject({ kind: "fault", fault: { code: "worker_lost", retryable: false } });
    expect(others(rewards)).toEqual(allRight);
    expect(workers.leases.filter((lease) => lease.released[0] === "broken")).toHaveLength(3);
  });

  it("doesn't take innocent programs with it, however many end their workers", async () => {
    const { rewards, results } = await grade(batchOf(withBad(6), echoTask(2)), {
      script: badMeets({ kind: "throw", error: lost() }),
      maxWorkers: 1,
    });
    expect(others(rewards, 6)).toEqual(allRight);
    expect(rewards.slice(5, 11)).toEqual([null, null, null, null, null, null]);
    for (const result of results.slice(5, 11)) expect(result).toMatchObject({ fault: { retryable: false } });
  });

  it("leaves nothing of a program to be run once its fate is known", async () => {
    const { results, workers } = await grade(batchOf(["bad", "bad too"], echoTask(2)), {
      script: badMeets({ kind: "throw", error: lost() }),
      maxWorkers: 1,
      slots: 4,
    });
    for (const result of results)
      expect(result).toMatchObject({ fault: { code: "worker_lost", retryable: false } });
    const sent = workers.chunks.map(({ chunk }) =>
      chunk.programs.map((job) => `${job.source.trim()}: ${job.inputs}`),
    );
    expect(sent).toEqual([
      ["bad: 0,1", "bad too: 0,1"],
      ["bad: 0"],
      ["bad: 1"],
      ["bad too: 0"],
      ["bad too: 1"],
    ]);
  });

  it("holds back only what waits of that program", async () => {
    const { rewards, turns } = await grade(batchOf(["bad", "once", ...many], echoTask(3)), {
      script: (turn) => {
        const isFirst = turn.job.source.startsWith("once") && turn.input === "0" && turn.attempt === 1;
        return isFirst || turn.job.source.startsWith("bad") ? { kind: "throw", error: lost() } : obey(turn);
      },
      maxWorkers: 1,
    }).then((done) => ({ ...done, turns: done.workers.turns }));
    expect(rewards).toEqual([null, 1, ...allRight]);
    expect(turns.filter((name) => name.startsWith("bad"))).toEqual(["bad 0", "bad 0", "bad 0"]);
  });

  it("is worth a retry when it ran alone for another reason and was lost for the first time", async () => {
    const { results } = await grade(batchOf(["bad"]), {
      script: badMeets(({ attempt }) =>
        attempt === 1
          ? { kind: "end", end: { kind: "starved", detail: "why" } }
          : { kind: "throw", error: lost() },
      ),
    });
    expect(results[0]).toMatchObject({ fault: { code: "worker_lost", retryable: true } });
  });

  it("is the platform's fault when the second worker was lost before the program had started", async () => {
    const { results } = await grade(batchOf(["bad"]), {
      script: badMeets(({ attempt }) => ({ kind: attempt === 1 ? "throw" : "throw_before", error: lost() })),
    });
    expect(results[0]).toMatchObject({ fault: { code: "worker_lost", retryable: true } });
  });

  it("is the platform's fault when every worker is lost before anything starts", async () => {
    const { rewards, results, workers } = await grade(batchOf(many), {
      script: () => ({ kind: "throw_before", error: lost() }),
    });
    expect(rewards).toEqual(many.map(() => null));
    expect(results[0]).toMatchObject({ fault: { code: "worker_lost", retryable: true } });
    expect(workers.chunks.length).toBeLessThan(24);
  });

  it("comes to an end when every worker is lost with something started", async () => {
    const { rewards, workers } = await grade(batchOf(many, echoTask(3)), {
      script: () => ({ kind: "throw", error: lost() }),
    });
    expect(rewards).toEqual(many.map(() => null));
    expect(workers.leases.length).toBeLessThan(100);
  });

  it("gives up before it has used up a worker for every program", async () => {
    const sources = Array.from({ length: 400 }, (_, index) => `right ${index}`);
    const { rewards, workers } = await grade(batchOf(sources), {
      script: () => ({ kind: "throw", error: lost() }),
      maxWorkers: 1,
    });
    expect(rewards).toEqual(sources.map(() => null));
    expect(workers.leases.length).toBeLessThan(400);
  });
});
