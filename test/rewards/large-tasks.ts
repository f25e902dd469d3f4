/** Tasks with checkers and texts of any kind, and the chunks that their programs make. */
import type { Chunk } from "../../functions/rewards/ports.ts";
import { createTaskPreparer, type PreparedTask } from "../../functions/rewards/task.ts";
import type { Assignment } from "../../functions/rewards/work-queue.ts";
import { limits } from "./echo-batches.ts";

/** Each case expects what its input is, for whatever the checker makes of that. */
export function checkedTask(
  checker: string,
  inputs: readonly string[],
  outputBytes = limits.outputBytes,
): PreparedTask {
  const preparation = createTaskPreparer()({
    tests: { kind: "checked", checker, cases: inputs.map((input) => ({ input, output: input })) },
    comparison: { type: "text", strict: false },
    limits: { ...limits, outputBytes },
    scoring: { rule: { kind: "fraction" }, weights: null },
    maxTests: null,
    failFast: false,
  });
  if (preparation.kind !== "ready") throw new Error("the task of a test can't be read");
  return preparation.task;
}

export function chunkOf({ portions }: Pick<Assignment, "portions">, chunkId = "x".repeat(36)): Chunk {
  const programs = portions.map(({ program: { id, source, task }, caseIndexes }) => ({
    id,
    source: source.toString(),
    mode: task.mode,
    ...(task.checker === null ? {} : { checker: task.checker }),
    inputs: caseIndexes.map((caseIndex) => task.inputs[caseIndex] ?? ""),
    limits: task.limits,
  }));
  return { chunkId, deadlineMs: 120_000, programs };
}
