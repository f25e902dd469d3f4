import { describe, expect, it } from "vitest";
import { Fault, type FaultCode } from "../../functions/rewards/faults.ts";
import type { WorkerEvent } from "../../functions/rewards/ports.ts";
import { allRight, badMeets, many, others, withBad } from "./bad-programs.ts";
import { grade, startGrading } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { endCase, lost, obey, type Step, type Turn } from "./scripted-workers.ts";
import { createVirtualClock, settle, type VirtualClock } from "./virtual-clock.ts";

describe("a worker that breaks the protocol", () => {
  const summary = { kind: "summary", end: "completed" } as const;
  const events = (...list: WorkerEvent[]): Step => ({ kind: "events", events: list });
  const exited = { kind: "exited", exitCode: 0 } as const;

  it.each<[string, (turn: Turn) => Step]>([
    [
      "throws that it does",
      () => ({ kind: "throw_before", error: new Fault("supervisor_protocol", "bad frame") }),
    ],
    [
      "does so while a program runs",
      () => ({ kind: "throw", error: new Fault("supervisor_protocol", "bad frame") }),
    ],
    ["ends without a summary", () => ({ kind: "stop" })],
    ["completes without an end for every case", () => ({ kind: "stop", summary: "completed" })],
    [
      "tells of a program it was not given",
      () => events({ kind: "case_started", programId: "px", caseIndex: 0 }),
    ],
    [
      "tells of a case it was not given",
      ({ job }) => events({ kind: "case_started", programId: job.id, caseIndex: 9 }),
    ],
    [
      "tells of a negative case",
      ({ job }) => events({ kind: "case_started", programId: job.id, caseIndex: -1 }),
    ],
    ["ends a case that has not started", ({ job }) => events(endCase(job, 0, exited, "0"))],
    [
      "ends a case twice",
      ({ job }) =>
        events(
          { kind: "case_started", programId: job.id, caseIndex: 0 },
          endCase(job, 0, { kind: "isolation_failed", detail: "so that the case stays open" }),
          endCase(job, 0, exited, "0"),
        ),
    ],
    [
      "starts a case twice",
      ({ job }) =>
        events(
          { kind: "case_started", programId: job.id, caseIndex: 0 },
          { kind: "case_started", programId: job.id, caseIndex: 0 },
        ),
    ],
    [
      "goes on after its summary",
      ({ job, caseIndex }) =>
        events(
          summary,
          { kind: "case_started", programId: job.id, caseIndex },
          endCase(job, caseIndex, exited, "0"),
        ),
    ],
  ])("%s: the case runs once more elsewhere, and the worker is drained", async (_, step) => {
    const { rewards, workers } = await grade(batchOf(withBad()), { script: badMeets(step, 1) });
    expect(rewards).toEqual(withBad().map(() => 1));
    expect(workers.leases.filter((lease) => lease.released[0] === "broken")).toHaveLength(1);
  });

  it("twice: there is no reward, and it may be sent again", async () => {
    const { rewards, results } = await grade(batchOf(withBad()), { script: badMeets({ kind: "stop" }) });
    expect(rewards[5]).toBeNull();
    expect(results[5]).toMatchObject({ fault: { code: "supervisor_protocol", retryable: true } });
  });

  it("finds a syntax error in a program whose other case ran: that is no zero", async () => {
    const { rewards, results } = await grade(batchOf(["odd"], echoTask(3)), {
      script: (turn) =>
        turn.input === "1" ? { kind: "syntax_error", detail: "line 1: memory" } : obey(turn),
    });
    expect(rewards).toEqual([null]);
    expect(results[0]).toMatchObject({ fault: { code: "supervisor_protocol" } });
  });

  it("tells more of a program after its syntax error", async () => {
    const { rewards, workers } = await grade(batchOf(["right", "bad"]), {
      script: badMeets(({ job }) =>
        events(
          { kind: "syntax_error", programId: job.id, detail: "line 1" },
          { kind: "syntax_error", programId: job.id, detail: "line 1" },
        ),
      ),
    });
    expect(rewards).toEqual([1, 0]);
    expect(workers.leases[0]?.released).toEqual(["broken"]);
  });
});

describe("a task that can't be judged", () => {
  const cannot = ({ job }: Turn): Step => ({
    kind: "events",
    events: [{ kind: "invalid_task", programId: job.id, detail: "memory_mib is over 384" }],
  });

  it("as its worker finds: no reward, no other try, and the others beside it are graded", async () => {
    const { rewards, results, workers, usage } = await grade(batchOf(withBad()), {
      script: badMeets(cannot),
    });
    expect(others(rewards)).toEqual(allRight);
    expect(rewards[5]).toBeNull();
    const detail = "The worker: memory_mib is over 384.";
    expect(results[5]).toMatchObject({ fault: { code: "invalid_task", detail, retryable: false } });
    expect(workers.leases.map(({ released }) => released[0])).not.toContain("broken");
    expect(usage).toMatchObject({ retries: 0, programsRun: 24 });
  });

  it("is told of a program whose case has run: that breaks the protocol", async () => {
    const { rewards } = await grade(batchOf(["bad", "right"], echoTask(3)), {
      script: badMeets((turn) => (turn.input === "1" ? cannot(turn) : obey(turn)), 1),
    });
    expect(rewards).toEqual([1, 1]);
  });
});

describe("a case that says nothing of its program", () => {
  it.each<[FaultCode & ("starved" | "isolation_failed"), "healthy" | "broken", number]>([
    ["starved", "healthy", 1],
    ["isolation_failed", "broken", 2],
  ])("%s: runs once more, and then counts", async (kind, condition, workersUsed) => {
    const { rewards, workers, usage } = await grade(batchOf(["right", "bad", "wrong"]), {
      script: badMeets({ kind: "end", end: { kind, detail: "why" } }, 1),
      maxWorkers: 1,
    });
    expect(rewards).toEqual([1, 1, 0]);
    expect(workers.leases[0]?.released).toEqual([condition]);
    expect(workers.leases).toHaveLength(workersUsed);
    expect(workers.chunks).toHaveLength(2);
    expect(workers.chunks[1]?.chunk.programs.map((job) => job.source)).toEqual(["bad\n"]);
    expect(usage).toMatchObject({ retries: 1, programsRun: 3 });
  });

  it.each<FaultCode & ("starved" | "isolation_failed")>(["starved", "isolation_failed"])(
    "%s twice: no reward, although its other cases passed",
    async (kind) => {
      const { rewards, results } = await grade(batchOf(["right", "bad"], echoTask(3)), {
        script: badMeets((turn) =>
          turn.input === "1" ? { kind: "end", end: { kind, detail: "why" } } : obey(turn),
        ),
      });
      expect(rewards).toEqual([1, null]);
      expect(results[1]).toMatchObject({ kind: "fault", fault: { code: kind, retryable: true } });
    },
  );

  it("starved: waits until everything else is handed out", async () => {
    const { workers } = await grade(batchOf(["bad", ...many]), {
      script: badMeets({ kind: "end", end: { kind: "starved", detail: "why" } }, 1),
      maxWorkers: 1,
    });
    expect(workers.chunks.at(-1)?.chunk.programs.map((job) => job.source)).toEqual(["bad\n"]);
  });
});

describe("the end of a batch's time", () => {
  it("leaves what has not ended without a reward, finished cases too, and stops the programs", async () => {
    const grading = startGrading(batchOf(["right", "bad", "wrong"], echoTask(2), { deadlineMs: 5_000 }), {
      script: badMeets((turn) => (turn.input === "1" ? { kind: "hang" } : obey(turn))),
      maxWorkers: 1,
    });
    await grading.clock.advance(4_999);
    expect(grading.results.filter(Boolean)).toHaveLength(1);
    await grading.clock.advance(1);
    const { rewards } = await grading.answer;
    expect(rewards).toEqual([1, null, null]);
    expect(grading.results[1]).toMatchObject({ fault: { code: "deadline_exceeded", retryable: true } });
    expect(grading.workers.leases[0]).toMatchObject({ aborted: true, released: ["healthy"] });
  });

  /** Lets time pass up to so long before the deadline, and then the worker says that it is over. */
  const ringing = (clock: VirtualClock, earlyMs: number) => async (): Promise<Step> => {
    await clock.advance(60_000 - earlyMs);
    return { kind: "stop", summary: "deadline" };
  };

  it("is the same when the worker's clock rings first", async () => {
    const clock = createVirtualClock();
    const { rewards, results, workers } = await grade(batchOf(["right", "bad"]), {
      clock,
      script: badMeets(ringing(clock, 500)),
    });
    expect(rewards).toEqual([1, null]);
    expect(results[1]).toMatchObject({ fault: { code: "deadline_exceeded" } });
    expect(workers.leases[0]?.released).toEqual(["healthy"]);
  });

  it("as told by a worker long before it is that worker's fault, and the case runs once more elsewhere", async () => {
    const clock = createVirtualClock();
    const { rewards, workers } = await grade(batchOf(["right", "bad"]), {
      clock,
      script: badMeets(ringing(clock, 50_000), 1),
      maxWorkers: 1,
    });
    expect(rewards).toEqual([1, 1]);
    expect(workers.leases.map(({ released }) => released[0])).toEqual(["broken", "healthy"]);
  });

  it.each([
    { hadForMs: 300, code: "no_capacity", says: /300 ms before/ },
    { hadForMs: 30_000, code: "sandbox_unavailable", says: /answered too late/ },
  ])("with a worker for $hadForMs ms that has started nothing: the batch is refused", async (row) => {
    const clock = createVirtualClock();
    const grading = startGrading(batchOf(many), {
      clock,
      onAcquire: async (count) =>
        (count === 1 ? clock.sleep(60_000 - row.hadForMs) : null) as Promise<undefined>,
      script: async ({ chunk }) => {
        await clock.sleep(chunk.deadlineMs);
        return { kind: "throw_before", error: new Fault("cancelled", "aborted") };
      },
    });
    await clock.advance(60_000);
    await expect(grading.answer).rejects.toMatchObject({
      code: row.code,
      message: expect.stringMatching(row.says),
    });
    expect(grading.results).toEqual([]);
    expect(grading.workers.chunks.length).toBeGreaterThan(0);
  });

  it("on a worker's clock that has started nothing: the batch is refused as well", async () => {
    const clock = createVirtualClock();
    const grading = startGrading(batchOf(["bad"]), { clock, script: badMeets(ringing(clock, 500)) });
    await expect(grading.answer).rejects.toMatchObject({ code: "sandbox_unavailable", retryable: true });
  });
});

describe("no worker", () => {
  it("before the deadline: the batch is refused, nothing having run", async () => {
    const grading = startGrading(batchOf(many, echoTask(1), { deadlineMs: 5_000 }), { capacity: 0 });
    await grading.clock.advance(5_000);
    await expect(grading.answer).rejects.toMatchObject({ name: "Fault", code: "no_capacity" });
    expect(grading.results).toEqual([]);
  });

  it.each<{ trouble: Fault | null; code: FaultCode }>([
    { trouble: new Fault("store_unavailable", "why"), code: "store_unavailable" },
    { trouble: new Fault("sandbox_unavailable", "why"), code: "sandbox_unavailable" },
    { trouble: null, code: "no_capacity" },
  ])(
    "before the deadline, with a trouble that is known: the refusal says $code",
    async ({ trouble, code }) => {
      const grading = startGrading(batchOf(many, echoTask(1), { deadlineMs: 5_000 }), {
        capacity: 0,
        trouble: [new Fault("isolation_failed", "an older one"), trouble],
      });
      await grading.clock.advance(5_000);
      await expect(grading.answer).rejects.toMatchObject({ name: "Fault", code });
    },
  );

  it("after the only one was lost, with a trouble that is known: what is open has that for its fault", async () => {
    const trouble = new Fault("store_unavailable", "why");
    const grading = startGrading(batchOf(withBad()), {
      script: badMeets({ kind: "throw", error: lost() }),
      maxWorkers: 1,
      trouble: [trouble],
      onAcquire: async (count, signal) => {
        if (count > 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return undefined;
      },
    });
    await grading.clock.advance(60_000);
    expect((await grading.answer).rewards).toEqual([
      1,
      1,
      1,
      1,
      1,
      ...withBad()
        .slice(5)
        .map(() => null),
    ]);
    expect(grading.results.at(-1)).toMatchObject({ fault: { code: "store_unavailable", detail: "why" } });
  });

  it("because the source gave up first: the same", async () => {
    await expect(grade(batchOf(many), { onAcquire: async () => null })).rejects.toMatchObject({
      code: "no_capacity",
    });
  });

  it("any more: what has run keeps its reward, the rest has none", async () => {
    const { rewards, results } = await grade(batchOf(withBad()), {
      script: badMeets({ kind: "throw", error: lost() }),
      onAcquire: async (count) => (count > 1 ? null : undefined),
      maxWorkers: 1,
    });
    expect(rewards.slice(0, 5)).toEqual([1, 1, 1, 1, 1]);
    expect(rewards.slice(5)).toEqual(
      withBad()
        .slice(5)
        .map(() => null),
    );
    expect(results.at(-1)).toMatchObject({ fault: { code: "no_capacity", retryable: true } });
  });

  const codes: FaultCode[] = [
    "misconfigured",
    "sandbox_unavailable",
    "store_unavailable",
    "isolation_failed",
  ];
  it.each(codes)("can be had (%s): the batch is refused at once", async (code) => {
    const refused = startGrading(batchOf(many), {
      onAcquire: async () => {
        throw new Fault(code, "why");
      },
    });
    await expect(refused.answer).rejects.toMatchObject({ code, message: "why" });
    expect(refused.workers.acquires, "both that were asked for, and none after them").toHaveLength(2);
  });

  it.each(codes)("beside the first one can be had (%s): that one does all the work", async (code) => {
    let noteStart = () => {};
    const oneHasStarted = new Promise<void>((resolve) => {
      noteStart = resolve;
    });
    const { rewards, workers } = await grade(
      batchOf([...many, ...many.map((name) => `${name}b`)], echoTask(3)),
      {
        onAcquire: async (count) => {
          if (count === 1) return;
          await oneHasStarted;
          throw new Fault(code, "why");
        },
        script: async (turn) => {
          if (turn.input === "1") noteStart();
          if (turn.input === "2") await settle();
          return obey(turn);
        },
      },
    );
    expect(rewards.every((reward) => reward === 1)).toBe(true);
    expect(workers.leases).toHaveLength(1);
    expect(workers.acquires).toHaveLength(2);
  });

  it("can be had beside the first one: it is asked for again after a while", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const grading = startGrading(batchOf([...many, ...many.map((name) => `${name}b`)], echoTask(3)), {
      onAcquire: async (count) => {
        if (count === 2) throw new Fault("sandbox_unavailable", "why");
      },
      script: async (turn) => {
        await gate;
        return obey(turn);
      },
    });
    await grading.clock.advance(4_999);
    expect(grading.workers.acquires).toHaveLength(2);
    await grading.clock.advance(1);
    await settle();
    expect(grading.workers.acquires).toHaveLength(3);
    expect(grading.workers.leases).toHaveLength(2);
    open();
    expect((await grading.answer).rewards.every((reward) => reward === 1)).toBe(true);
  });

  it("can be had beside the first one: it is asked for again once that one is gone", async () => {
    const { rewards, workers } = await grade(batchOf(withBad(), echoTask(3)), {
      onAcquire: async (count) => {
        if (count === 2) throw new Fault("sandbox_unavailable", "why");
      },
      script: async (turn) => {
        await settle();
        return turn.job.source.startsWith("bad") && turn.attempt === 1
          ? { kind: "throw", error: lost() }
          : obey(turn);
      },
    });
    expect(rewards).toEqual(withBad().map(() => 1));
    expect(workers.leases.map((lease) => lease.released[0])).toContain("broken");
    expect(workers.leases.length).toBeGreaterThanOrEqual(2);
  });
});

describe("a batch that is stopped", () => {
  it("by its caller: every program ends and every worker goes back", async () => {
    const grading = startGrading(batchOf(many, echoTask(2)), { script: () => ({ kind: "hang" }) });
    await settle();
    expect(grading.workers.leases).toHaveLength(2);
    grading.stop.abort();
    await expect(grading.answer).rejects.toMatchObject({ name: "Fault", code: "cancelled" });
    for (const lease of grading.workers.leases) {
      expect(lease).toMatchObject({ aborted: true, executing: 0, released: ["healthy"] });
    }
    expect(grading.results).toEqual([]);
  });

  it("while it waits for a worker: the request for it is taken back", async () => {
    const grading = startGrading(batchOf(many), { capacity: 0 });
    await settle();
    grading.stop.abort();
    await expect(grading.answer).rejects.toMatchObject({ code: "cancelled" });
    expect(grading.workers.acquires[0]?.signal.aborted).toBe(true);
  });

  it("before it begins: no worker is asked for", async () => {
    const stop = new AbortController();
    stop.abort();
    const grading = startGrading(batchOf(many), { hooks: { signal: stop.signal } });
    await expect(grading.answer).rejects.toMatchObject({ code: "cancelled" });
    expect(grading.workers.acquires).toEqual([]);
  });

  it("is not its workers' fault, whatever they make of it", async () => {
    const grading = startGrading(batchOf(many), { script: () => ({ kind: "hang", error: lost() }) });
    await settle();
    grading.stop.abort();
    await expect(grading.answer).rejects.toMatchObject({ code: "cancelled" });
    for (const lease of grading.workers.leases) expect(lease.released).toEqual(["healthy"]);
  });

  it("by somebody else, on a worker: the whole batch is cancelled", async () => {
    const grading = startGrading(batchOf(withBad()), {
      script: badMeets({ kind: "stop", summary: "cancelled" }),
    });
    await expect(grading.answer).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("a lease that is lost", () => {
  it("moves the work elsewhere, and suspects nobody", async () => {
    const { rewards, workers } = await grade(batchOf(withBad()), {
      script: badMeets({ kind: "stop", started: true, summary: "superseded" }, 1),
      maxWorkers: 1,
    });
    expect(rewards).toEqual(withBad().map(() => 1));
    expect(workers.leases[0]?.released).toEqual(["broken"]);
    const bad = workers.chunks.filter(({ chunk }) =>
      chunk.programs.some((job) => job.source.startsWith("bad")),
    );
    expect(bad).toHaveLength(2);
    expect(bad[1]?.chunk.programs.length).toBeGreaterThan(1);
  });

  it("twice leaves no reward, and it may be sent again", async () => {
    const { results } = await grade(batchOf(["bad"]), {
      script: badMeets({ kind: "stop", started: true, summary: "superseded" }),
    });
    expect(results[0]).toMatchObject({ fault: { code: "worker_lost", retryable: true } });
  });
});

describe("an error that is no fault", () => {
  it("ends the batch, and every worker goes back", async () => {
    const grading = startGrading(batchOf(many, echoTask(2)), {
      script: (turn) =>
        turn.job.source.startsWith("right 3") ? { kind: "throw", error: new TypeError("a bug") } : obey(turn),
    });
    await expect(grading.answer).rejects.toThrow("a bug");
  });

  it("of the worker source does the same", async () => {
    const grading = startGrading(batchOf(many), {
      onAcquire: async (count) => {
        if (count === 2) throw new TypeError("a bug");
      },
      script: () => ({ kind: "hang" }),
    });
    await expect(grading.answer).rejects.toThrow("a bug");
  });
});
