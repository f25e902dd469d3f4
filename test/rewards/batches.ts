/** Batches for tests: programs are named by their source, and each test's expected output is its input. */
import { afterEach, expect } from "vitest";
import type { Batch, BatchAnswer, BatchHooks, SampleResult } from "../../functions/rewards/batch.ts";
import { createBatchGrader } from "../../functions/rewards/batch-grader.ts";
import { createTaskPreparer, type PreparedTask, type TaskDefinition } from "../../functions/rewards/task.ts";
import {
  createScriptedWorkers,
  type ScriptedWorkers,
  type ScriptedWorkersOptions,
} from "./scripted-workers.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

export const limits = { timeMs: 2000, memoryMib: 192, outputBytes: 65_536 };

const plain = {
  comparison: { type: "json" },
  limits,
  scoring: { rule: { kind: "fraction" }, weights: null },
  maxTests: null,
  failFast: false,
} as const;

/** A task whose outputs are expected to be its inputs. */
export function echoTask(cases: number, firstInput = 0, change: Partial<TaskDefinition> = {}): PreparedTask {
  const testCases = Array.from({ length: cases }, (_, index) => {
    const text = String(firstInput + index);
    return { input: text, output: text };
  });
  return prepare({ ...plain, tests: { kind: "stdin", cases: testCases }, ...change });
}

export function taskOf(cases: readonly { input: string; output: string }[]): PreparedTask {
  return prepare({ ...plain, tests: { kind: "stdin", cases } });
}

function prepare(definition: TaskDefinition): PreparedTask {
  const preparation = createTaskPreparer()(definition);
  if (preparation.kind !== "ready") throw new Error("the task of a test can't be read");
  return preparation.task;
}

export function fence(source: string): string {
  return `\`\`\`python\n${source}\n\`\`\``;
}

export function batchOf(sources: readonly string[], task = echoTask(1), options: Partial<Batch> = {}): Batch {
  return {
    samples: sources.map((source) => ({ task, completion: fence(source) })),
    extraction: { extraction: "first", reasoning: "auto" },
    deadlineMs: 60_000,
    keepOutput: false,
    ...options,
  };
}

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
}

const gradings: Grading[] = [];

/** Starts to grade a batch with scripted workers. */
export function startGrading(batch: Batch, options: GradingOptions = {}): Grading {
  const { maxWorkers = 2, clock = createVirtualClock() } = options;
  const workers = createScriptedWorkers(options);
  let chunkCount = 0;
  const gradeBatch = createBatchGrader({
    workers,
    clock,
    newId: () => `chunk-${++chunkCount}`,
    config: { maxWorkers },
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

/** Grades a batch to its end. */
export async function grade(batch: Batch, options: GradingOptions = {}) {
  const grading = startGrading(batch, options);
  return { ...grading, ...(await grading.answer) };
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
