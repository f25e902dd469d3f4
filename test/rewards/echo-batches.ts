/** Batches for tests: programs are named by their source, and each test's expected output is its input. */
import type { Batch } from "../../functions/rewards/batch.ts";
import { createTaskPreparer, type PreparedTask, type TaskDefinition } from "../../functions/rewards/task.ts";

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
