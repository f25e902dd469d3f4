/**
 * In which portions the cases of a program that fails fast are handed out. Outputs are compared here and not in a
 * worker, which therefore can't know when to stop: a few cases show most wrong programs, and each stage that is passed
 * makes the next one larger, so that a right program doesn't take many requests.
 */
import type { PreparedTask } from "./task.ts";

const FIRST_CASES = 4;
const GROWTH = 4;

/** How many of the task's cases may be handed out at first. */
export function firstStage({ failFast, inputs }: PreparedTask): number {
  return failFast ? Math.min(inputs.length, FIRST_CASES) : inputs.length;
}

/** How many when all of those have passed. */
export function nextStage({ inputs }: PreparedTask, stage: number): number {
  return Math.min(inputs.length, stage * GROWTH);
}
