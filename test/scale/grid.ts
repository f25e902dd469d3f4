/** Which points are simulated: not each with each, but along each direction far enough to see where it leads. */
import type { Point } from "./load.ts";
import { predictStepMs } from "./rule.ts";

export const workerCounts = [1, 2, 4, 8, 16, 32, 64, 100];
export const sampleCounts = [10, 64, 512, 2_048, 10_000];
export const batchCounts = [2, 5, 10, 20, 50];

/** A batch that takes longer is not what anybody should send: its deadline is near. */
const longestStepMs = 700_000;
/** So many programs, or steps, say enough of a point; a step of more than that says it alone. */
const enoughPrograms = 5_000;
const fewestSteps = 3;
const mostSteps = 24;
const largestRepeated = 30_000;

export function pointOf(workers: number, samples: number, batches: number, enough = enoughPrograms): Point {
  const programs = samples * batches;
  const fewest = programs > largestRepeated ? 1 : fewestSteps;
  const steps = Math.max(fewest, Math.min(mostSteps, Math.ceil(enough / programs)));
  return { workers, samples, batches, steps };
}

/** One batch at a time, of any size, on any pool. */
export const alonePoints: readonly Point[] = sampleCounts
  .flatMap((samples) => workerCounts.map((workers) => pointOf(workers, samples, 1)))
  .filter((point) => predictStepMs(point) < longestStepMs);

/** More and more batches at once; those of one batch are among the points above. */
export const crowdPoints: readonly Point[] = [
  ...[1, 4, 16, 64].flatMap((workers) => batchCounts.map((batches) => pointOf(workers, 64, batches))),
  ...[4, 16, 100].flatMap((workers) => batchCounts.map((batches) => pointOf(workers, 512, batches))),
  ...[5, 10, 50].map((batches) => pointOf(100, 10_000, batches)),
].filter((point) => predictStepMs(point) < longestStepMs);
