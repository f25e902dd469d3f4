import { describe, expect, it } from "vitest";
import { grade, startGrading } from "./batches.ts";
import { batchOf, echoTask, fence, taskOf } from "./echo-batches.ts";
import { obey } from "./scripted-workers.ts";
import { settle } from "./virtual-clock.ts";

describe("a batch on healthy workers", () => {
  it("gets one reward per sample, in order", async () => {
    const { rewards, results } = await grade(
      batchOf(["right", "wrong", "broken", "slow", "right 2"], echoTask(3)),
    );
    expect(rewards).toEqual([1, 0, 0, 0, 1]);
    expect(results.map((result) => result.kind)).toEqual([
      "graded",
      "graded",
      "syntax_error",
      "graded",
      "graded",
    ]);
  });

  it("keeps the order when workers finish out of order", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const sources = Array.from({ length: 24 }, (_, index) =>
      index % 3 === 0 ? `wrong ${index}` : `right ${index}`,
    );
    const grading = startGrading(batchOf(sources, echoTask(4)), {
      script: async (turn) => {
        if (turn.workerId === "w1") await gate;
        return obey(turn);
      },
    });
    await settle();
    expect(grading.results.filter(Boolean).length).toBeGreaterThan(10);
    expect(grading.results[0]).toBeUndefined();
    open();
    const { rewards } = await grading.answer;
    expect(rewards).toEqual(sources.map((source) => (source.startsWith("wrong") ? 0 : 1)));
  });

  it.each([
    ["crash", { kind: "runtime_error", exitCode: 3 }],
    ["segv", { kind: "signaled", signal: "SIGSEGV" }],
    ["slow", { kind: "time_limit" }],
    ["fat", { kind: "memory_limit" }],
    ["loud", { kind: "output_limit" }],
    ["wrong", { kind: "wrong_output" }],
    ["right", { kind: "passed" }],
  ])("scores a program that goes %s", async (source, verdict) => {
    const { results, rewards } = await grade(batchOf([source]));
    expect(results[0]).toMatchObject({
      kind: "graded",
      cases: [{ verdict, wallMs: 4, cpuMs: 3, peakRssKib: 9000 }],
    });
    expect(rewards).toEqual([source === "right" ? 1 : 0]);
  });

  it("gives the share of cases that passed", async () => {
    const { rewards, results } = await grade(batchOf(["some"], echoTask(3)), {
      script: ({ input }) => ({ kind: "print", stdout: input === "1" ? "1" : "99" }),
    });
    expect(rewards).toEqual([1 / 3]);
    expect(results[0]).toMatchObject({ passed: 1, cases: { length: 3 } });
  });

  it("asks for no worker when no completion holds a program", async () => {
    const batch = batchOf([], echoTask(2), {
      samples: [
        { task: echoTask(2), completion: "I don't know." },
        { task: echoTask(2), completion: fence("   ") },
      ],
    });
    const { rewards, results, workers, usage } = await grade(batch);
    expect(rewards).toEqual([0, 0]);
    expect(results).toEqual([
      { kind: "no_program", reward: 0, reason: "no_fenced_block", total: 2 },
      { kind: "no_program", reward: 0, reason: "empty_block", total: 2 },
    ]);
    expect(workers.acquires).toHaveLength(0);
    expect(usage).toMatchObject({ queueMs: 0, workers: 0, programsRun: 0 });
  });

  it("keeps outputs only when asked to", async () => {
    const without = await grade(batchOf(["right"]));
    expect(without.results[0]).not.toHaveProperty("cases.0.stdout");
    const kept = await grade(batchOf(["right"], echoTask(1), { keepOutput: true }));
    expect(kept.results[0]).toMatchObject({ cases: [{ stdout: "0", stderrTail: "tail" }] });
  });

  it("stops keeping outputs when they fill the batch's room, and grades on", async () => {
    const big = JSON.stringify("x".repeat(1_000_000));
    const { results, rewards } = await grade(batchOf(["right"], echoTask(40), { keepOutput: true }), {
      script: () => ({ kind: "print", stdout: big }),
    });
    const cases = results[0]?.kind === "graded" ? results[0].cases : [];
    expect(cases.filter((single) => single.verdict !== null && single.stdout !== undefined).length).toBe(33);
    expect(rewards).toEqual([0]);
  });

  it("is answered only when every worker is back", async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const grading = startGrading(batchOf(["right"]), { beforeRelease: () => gate });
    let answered = false;
    void grading.answer.then(() => {
      answered = true;
    });
    await settle();
    expect(grading.results).toHaveLength(1);
    expect(answered).toBe(false);
    release();
    await grading.answer;
  });

  it("says what it cost", async () => {
    const grading = startGrading(batchOf(["right", "right", "broken", "hangs"]), {
      created: true,
      maxWorkers: 1,
      onAcquire: async (_, signal) => {
        await grading.clock.sleep(250, signal);
      },
      script: async (turn) => {
        if (turn.job.source.startsWith("hangs")) await grading.clock.sleep(2_000);
        return obey(turn);
      },
    });
    await grading.clock.advance(5_000);
    expect((await grading.answer).usage).toEqual({
      wallMs: 2_250,
      queueMs: 250,
      workers: 1,
      workerSeconds: 2,
      workersCreated: 1,
      retries: 0,
      programsRun: 3,
      duplicates: 1,
    });
  });
});

describe("equal programs", () => {
  it("run once per task of equal content, and each sample is answered", async () => {
    const batch = batchOf([], echoTask(2), {
      samples: [
        { task: echoTask(2), completion: fence("wrong") },
        { task: echoTask(2), completion: fence("right") },
        { task: echoTask(2), completion: `Here:\n\n~~~py\nright\n~~~\n` },
        { task: echoTask(2, 5), completion: fence("right") },
        { task: echoTask(2), completion: fence("right") },
      ],
    });
    const { rewards, turns, usage } = await grade(batch).then((done) => ({
      ...done,
      turns: done.workers.turns,
    }));
    expect(rewards).toEqual([0, 1, 1, 1, 1]);
    expect(turns.sort()).toEqual(["right 0", "right 1", "right 5", "right 6", "wrong 0", "wrong 1"]);
    expect(usage).toMatchObject({ programsRun: 3, duplicates: 2 });
  });

  it("share a fault as they share a verdict", async () => {
    const { rewards, results } = await grade(batchOf(["right", "right"]), {
      script: () => ({ kind: "end", end: { kind: "starved", detail: "0.1 s of 2 s" } }),
    });
    expect(rewards).toEqual([null, null]);
    expect(results[1]).toEqual(results[0]);
  });
});

describe("what a worker is sent", () => {
  it("is at most one request for five programs when 64 programs run on 2 workers", async () => {
    const sources = Array.from({ length: 64 }, (_, index) => `right ${index}`);
    for (const cases of [1, 3, 10]) {
      const { workers, rewards } = await grade(batchOf(sources, echoTask(cases)));
      expect(rewards).toEqual(sources.map(() => 1));
      expect(workers.leases).toHaveLength(2);
      expect(workers.chunks.length / 64).toBeLessThanOrEqual(0.2);
    }
  });

  it("has programs of all tasks, so that a hard one doesn't keep a single worker", async () => {
    const tasks = Array.from({ length: 4 }, (_, index) => echoTask(3, 10 * index));
    const samples = tasks.flatMap((task) =>
      Array.from({ length: 16 }, (_, index) => ({ task, completion: fence(`right ${index}`) })),
    );
    const { workers, rewards } = await grade(batchOf([], tasks[0], { samples }));
    expect(rewards).toEqual(samples.map(() => 1));
    const [first] = workers.chunks;
    const inputs = new Set(first?.chunk.programs.map((job) => job.inputs[0]));
    expect(inputs).toEqual(new Set(["0", "10", "20", "30"]));
  });

  it("leaves an idle worker something to do while another one is slow", async () => {
    const sources = Array.from({ length: 64 }, (_, index) => `right ${index}`);
    const grading = startGrading(batchOf(sources, echoTask(3)), {
      script: async (turn) => {
        if (turn.workerId === "w1") await grading.clock.sleep(1_000_000, grading.stop.signal);
        return obey(turn);
      },
    });
    await settle();
    await grading.clock.advance(0);
    expect(grading.results.filter(Boolean).length).toBeGreaterThanOrEqual(40);
    grading.stop.abort();
    await expect(grading.answer).rejects.toMatchObject({ code: "cancelled" });
  });

  it("is a part of a program that has very many cases", async () => {
    const { workers, rewards } = await grade(batchOf(["right"], echoTask(1000)));
    expect(rewards).toEqual([1]);
    expect(new Set(workers.turns).size).toBe(1000);
    expect(workers.turns).toHaveLength(1000);
    expect(new Set(workers.chunks.map(({ workerId }) => workerId)).size).toBe(2);
  });

  it("is never much more than 4 MiB", async () => {
    const text = JSON.stringify("y".repeat(1_000_000));
    const testCases = Array.from({ length: 12 }, () => ({ input: text, output: text }));
    const task = taskOf(testCases);
    const { workers, rewards } = await grade(batchOf(["right", "right 2"], task));
    expect(rewards).toEqual([1, 1]);
    for (const { chunk } of workers.chunks) {
      const bytes = chunk.programs.flatMap((job) => job.inputs).reduce((sum, input) => sum + input.length, 0);
      expect(bytes).toBeLessThanOrEqual(4 * 1024 * 1024);
    }
  });

  it("says how much of the batch's time is left", async () => {
    const grading = startGrading(batchOf(["right"], echoTask(1), { deadlineMs: 30_000 }), {
      onAcquire: async (_, signal) => {
        await grading.clock.sleep(12_000, signal);
      },
    });
    await grading.clock.advance(12_000);
    await grading.answer;
    expect(grading.workers.chunks[0]?.chunk.deadlineMs).toBe(18_000);
    expect(grading.workers.acquires[0]?.deadlineAtMs).toBe(1_700_000_030_000);
  });
});

describe("how many workers are asked for", () => {
  it.each([
    [1, 3, 20, 1],
    [8, 4, 20, 2],
    [64, 3, 20, 12],
    [64, 3, 2, 2],
  ])(
    "%i programs of %i cases with at most %i workers take %i",
    async (programs, cases, maxWorkers, wanted) => {
      const sources = Array.from({ length: programs }, (_, index) => `right ${index}`);
      let open = () => {};
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      const grading = startGrading(batchOf(sources, echoTask(cases)), {
        maxWorkers,
        script: async (turn) => {
          await gate;
          return obey(turn);
        },
      });
      await settle();
      await settle();
      expect(grading.workers.leases).toHaveLength(wanted);
      open();
      await grading.answer;
    },
  );

  it("asks for them side by side, and takes the requests back as soon as nothing waits", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const sources = Array.from({ length: 64 }, (_, index) => `right ${index}`);
    const grading = startGrading(batchOf(sources), {
      capacity: 1,
      maxWorkers: 4,
      script: async (turn) => {
        if (turn.job.source === "right 63\n") await gate;
        return obey(turn);
      },
    });
    await settle();
    expect(grading.results.filter(Boolean)).toHaveLength(63);
    expect(grading.workers.acquires.map(({ signal }) => signal.aborted)).toEqual([false, true, true, true]);
    open();
    expect((await grading.answer).rewards).toEqual(sources.map(() => 1));
    expect(grading.workers.leases).toHaveLength(1);
  });

  it("gives back, unused, a worker that comes too late", async () => {
    let arrive = () => {};
    const late = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    const sources = Array.from({ length: 64 }, (_, index) => `right ${index}`);
    const clock = startGrading(batchOf(["right"])).clock;
    const grading = startGrading(batchOf(sources), {
      clock,
      onAcquire: async (number) => {
        if (number === 2) await late;
      },
    });
    await settle();
    await settle();
    arrive();
    await grading.answer;
    expect(grading.workers.leases[0]?.released).toEqual(["healthy"]);
  });
});
