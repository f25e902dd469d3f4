/** Batches graded by scripted workers, and what must be true of each grading. */
import { afterEach, expect } from "vitest";
import type { Batch, BatchAnswer, BatchHooks, SampleResult } from "../../functions/rewards/batch.ts";
import { createBatchGrader } from "../../functions/rewards/batch-grader.ts";
import {
  createScriptedWorkers,
  type ScriptedWorkers,
  type ScriptedWorkersOptions,
} from "./scripted-workers.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

export interface Grading {
  readonly workers: ScriptedWorkers;
  readonly clock: VirtualClock;
  readonly results: SampleResult[];
  readonly stop: AbortController;
  readonly answer: Promise<BatchAnswer>;
}

export interface GradingOptions extends ScriptedWorkersOptions {
  readonly maxWorkers?: number;
  readonly hooks?: Partial<BatchHooks>;
  readonly clock?: VirtualClock;
  readonly whileWorkersLeave?: () => Promise<void>;
}

const gradings: Grading[] = [];

/** Starts to grade a batch with scripted workers. */
export function startGrading(batch: Batch, options: GradingOptions = {}): Grading {
  const { maxWorkers = 2, clock = createVirtualClock(), whileWorkersLeave = async () => {} } = options;
  const workers = createScriptedWorkers(options);
  let chunkCount = 0;
  const gradeBatch = createBatchGrader({
    workers,
    clock,
    newId: () => `chunk-${++chunkCount}`,
    config: { maxWorkers },
    whileWorkersLeave,
  });
  const results: SampleResult[] = [];
  const stop = new AbortController();
  const answer = gradeBatch(batch, {
    signal: stop.signal,
    onSample: (index, result) => {
      expect(results[index], `sample ${index} has one result`).toBeUndefined();
      results[index] = result;
    },
    ...options.hooks,
  });
  answer.catch(() => {});
  const grading = { workers, clock, results, stop, answer };
  gradings.push(grading);
  return grading;
}

/** Grades a batch to its end, for which time passes whenever all wait for it. */
export async function grade(batch: Batch, options: GradingOptions = {}) {
  const grading = startGrading(batch, options);
  let isOver = false;
  const answer = grading.answer.finally(() => {
    isOver = true;
  });
  answer.catch(() => {});
  await grading.clock.runUntil(() => isOver);
  return { ...grading, ...(await answer) };
}

afterEach(async () => {
  for (const { answer, clock, stop, workers } of gradings.splice(0)) {
    stop.abort();
    await answer.catch(() => {});
    for (const lease of workers.leases) {
      expect(lease.released, `${lease.workerId} is released exactly once`).toHaveLength(1);
      expect(lease.executing, `${lease.workerId} runs nothing any more`).toBe(0);
    }
    const ids = workers.chunks.map(({ chunk }) => chunk.chunkId);
    expect(new Set(ids).size, "no chunk id is used twice").toBe(ids.length);
    expect(clock.sleepers(), "nobody sleeps any more").toBe(0);
  }
});
