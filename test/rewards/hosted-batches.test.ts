import { describe, expect, it } from "vitest";
import type { Batch, GradeBatch, SampleResult, Usage } from "../../functions/rewards/batch.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { type BatchReport, hostBatches, type RequestHost } from "../../functions/rewards/hosted-batches.ts";
import { createVirtualClock } from "./virtual-clock.ts";

const usage: Usage = {
  wallMs: 10,
  queueMs: 1,
  workers: 1,
  workerSeconds: 0.01,
  workersCreated: 0,
  retries: 0,
  programsRun: 1,
  duplicates: 0,
};
const graded: SampleResult = { kind: "graded", reward: 1, passed: 1, cases: [] };
const faulty = (code: "worker_lost" | "starved"): SampleResult => ({
  kind: "fault",
  reward: null,
  fault: { code, detail: "…", retryable: true },
});
const signal = new AbortController().signal;

function batchOf(samples: number, deadlineMs = 60_000): Batch {
  const sample = { task: {}, completion: "" } as Batch["samples"][number];
  return {
    samples: new Array(samples).fill(sample),
    extraction: { extraction: "first", reasoning: "auto" },
    deadlineMs,
    keepOutput: false,
  };
}

/** A host that leaves each batch so much time, and what it is told. */
function createHost(timeLeftMs = Number.POSITIVE_INFINITY) {
  const told = { runs: [] as string[], reports: [] as BatchReport[], refusals: [] as unknown[] };
  const surroundings: RequestHost = {
    timeLeftMs: () => timeLeftMs,
    noteRun: (runId) => told.runs.push(runId),
    reportBatch: (report) => told.reports.push(report),
    reportRefusal: (runId, failure) => told.refusals.push({ runId, failure }),
  };
  return { told, surroundings };
}

/** A grader that has one batch, and what the host was told of it. */
async function host(gradeBatch: GradeBatch, timeLeftMs?: number) {
  const { told, surroundings } = createHost(timeLeftMs);
  const clock = createVirtualClock();
  const admit = hostBatches(async () => ({ kind: "admitted", gradeBatch }), surroundings, clock);
  const admission = await admit({ runId: "job-7", key: null });
  if (admission.kind !== "admitted") throw new Error("refused");
  return { ...told, gradeBatch: admission.gradeBatch };
}

/** Tells the results of the samples, then answers with their rewards. */
const answerWith =
  (...results: SampleResult[]): GradeBatch =>
  async (_batch, { onSample }) => {
    for (const [index, result] of results.entries()) onSample?.(index, result);
    return { rewards: results.map(({ reward }) => reward), usage };
  };

const failWith =
  (error: Error): GradeBatch =>
  async (_batch, { onSample }) => {
    onSample?.(0, graded);
    throw error;
  };

describe("a batch's report", () => {
  it("counts the samples that the platform failed to grade, by what failed", async () => {
    const hosted = await host(
      answerWith(graded, faulty("worker_lost"), faulty("starved"), faulty("starved")),
    );
    await hosted.gradeBatch(batchOf(4), { signal });
    expect(hosted.runs).toEqual(["job-7"]);
    expect(hosted.reports).toEqual([
      { runId: "job-7", samples: 4, faults: 3, faultCodes: { worker_lost: 1, starved: 2 }, usage },
    ]);
  });

  it.each([
    { what: "no worker could be had", failure: new Fault("no_capacity", "…"), faults: 3 },
    { what: "of a bug", failure: new TypeError("…"), faults: 3 },
    { what: "nobody wants it any more", failure: new Fault("cancelled", "…"), faults: 0 },
    { what: "another attempt has its place", failure: new Fault("in_progress", "…"), faults: 0 },
    { what: "the process is restarted", failure: new Fault("stopping", "…"), faults: 0 },
    { what: "its run is finished", failure: new Fault("run_finished", "…"), faults: 0 },
  ])("counts a batch that has no answer because $what: $faults of 3 samples", async ({ failure, faults }) => {
    const hosted = await host(failWith(failure));
    await expect(hosted.gradeBatch(batchOf(3), { signal })).rejects.toBe(failure);
    expect(hosted.reports).toEqual([{ runId: "job-7", samples: 3, faults, faultCodes: {}, failure }]);
  });

  it("comes before the answer, and after all of the batch's own results", async () => {
    const seen: string[] = [];
    const hosted = await host(async (batch, hooks) => {
      const answer = await answerWith(graded)(batch, hooks);
      seen.push("graded");
      return answer;
    });
    await hosted.gradeBatch(batchOf(1), { signal, onSample: () => seen.push("sample") });
    expect(seen).toEqual(["sample", "graded"]);
    expect(hosted.reports).toHaveLength(1);
  });
});

describe("a batch that is not let in", () => {
  it.each([
    { what: "the table is away", failure: new Fault("store_unavailable", "…"), isTold: true },
    { what: "of a bug", failure: new TypeError("…"), isTold: true },
    { what: "the process is restarted", failure: new Fault("stopping", "…"), isTold: false },
    { what: "nobody wants it any more", failure: new Fault("cancelled", "…"), isTold: false },
  ])("because $what is told of: $isTold", async ({ failure, isTold }) => {
    const { told, surroundings } = createHost();
    const admit = hostBatches(() => Promise.reject(failure), surroundings, createVirtualClock());
    await expect(admit({ runId: "job-7", key: null })).rejects.toBe(failure);
    expect(told.refusals).toEqual(isTold ? [{ runId: "job-7", failure }] : []);
    expect(told.reports).toEqual([]);
  });
});

describe("a batch's deadline", () => {
  it.each([
    { asked: 60_000, left: Number.POSITIVE_INFINITY, given: 60_000 },
    { asked: 840_000, left: 899_000, given: 840_000 },
    { asked: 840_000, left: 300_000, given: 270_000 },
    { asked: 5_000, left: 35_001, given: 5_000 },
    { asked: 5_000, left: 34_000, given: 4_000 },
    { asked: 5_000, left: 3_000, given: 1 },
  ])("of $asked ms is $given ms when the platform leaves $left ms", async ({ asked, left, given }) => {
    const deadlines: number[] = [];
    const hosted = await host((batch, hooks) => {
      deadlines.push(batch.deadlineMs);
      return answerWith(graded)(batch, hooks);
    }, left);
    await hosted.gradeBatch(batchOf(1, asked), { signal });
    expect(deadlines).toEqual([given]);
  });
});
