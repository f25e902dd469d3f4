/**
 * Where more makes it worse: more workers or more batches at once that end in fewer programs a second, or in waits that
 * grow faster than the load.
 */
import type { Figures } from "./figures.ts";

/** What figures of two points may differ by without a reason. */
const tolerance = 0.1;
/** Workers that are busier than this have more to do than they can: more of them must be of use. */
const isLoadedFrom = 0.9;
/** So much that twice the workers must grade more, though the slowest program takes as long as ever. */
const gainOfTwice = 1.3;

/** A sentence for each cliff between points of one direction; none in the best case. */
export function findCliffs(points: readonly Figures[]): string[] {
  return [
    ...alongEach(points, ({ samples, batches }) => `${batches} × ${samples}`, "workers", compareWorkers),
    ...alongEach(points, ({ workers, samples }) => `${workers} with ${samples}`, "batches", compareBatches),
  ];
}

/** Compares each point with those below it in its direction, which differ in one thing only. */
function alongEach(
  points: readonly Figures[],
  nameOf: (point: Figures) => string,
  grows: "workers" | "batches",
  compare: (less: Figures, more: Figures) => string[],
): string[] {
  const found: string[] = [];
  for (const name of new Set(points.map(nameOf))) {
    const group = points.filter((point) => nameOf(point) === name);
    const sorted = group.toSorted((one, other) => one[grows] - other[grows]);
    for (const [index, more] of sorted.entries()) {
      for (const less of sorted.slice(0, index)) {
        const where = `${name}, from ${less[grows]} to ${more[grows]} ${grows}`;
        found.push(...compare(less, more).map((what) => `${where}: ${what}`));
      }
    }
  }
  return found;
}

function compareWorkers(less: Figures, more: Figures): string[] {
  const gain = more.programsPerSecond / less.programsPerSecond;
  if (gain < 1 - tolerance) return [`throughput falls to ${describe(gain)}`];
  const isDoubled = more.workers >= 2 * less.workers && less.busyWhileGraded > isLoadedFrom;
  return isDoubled && gain < gainOfTwice
    ? [`throughput grows to ${describe(gain)} only, and all were busy`]
    : [];
}

function compareBatches(less: Figures, more: Figures): string[] {
  const found: string[] = [];
  const gain = more.programsPerSecond / less.programsPerSecond;
  if (gain < 1 - tolerance) found.push(`throughput falls to ${describe(gain)}`);
  const load = more.batches / less.batches;
  const slower = more.batchMsP95 / less.batchMsP95;
  if (slower > load * (1 + tolerance))
    found.push(`batches take ${describe(slower)}, at ${describe(load)} the load`);
  const longestWaitMs = more.batches * less.batchMsP95 * (1 + tolerance);
  if (more.queueMsP95 > longestWaitMs / less.batches)
    found.push(`batches wait for ${Math.round(more.queueMsP95)} ms`);
  return found;
}

function describe(times: number): string {
  return `${times.toFixed(2)} times`;
}
