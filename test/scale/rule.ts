/**
 * The rule by which a pool's size is chosen, and what it says of a step's length.
 *
 * Theory. Programs keep CPUs busy, and a worker has a few of them. So a step of P programs of C CPU seconds takes
 * P × C / (CPUs × workers), and in the end the slowest program, of which nobody can be spared: its cases run on one
 * worker, one per CPU at a time. A batch is given one worker for each 16 test cases at most. A worker that goes from one
 * batch to the next is free for a moment, since nobody queues for it: waiting handlers look at the table now and then.
 */
import { casesPerProgram, handlerCpuMs, programMix, slotsPerWorker, timeLimitMs } from "./assumptions.ts";
import type { Point } from "./load.ts";
import { meanProgramCpuMs } from "./programs.ts";

/** A worker is given to a batch for each so many cases: `CASES_PER_WORKER` of the dispatch. */
const casesPerWorker = 16;
/** Of a worker's CPUs, while there is enough to do: the rest waits for the last case of a chunk and for the next chunk. */
export const utilisation = 0.95;
/** Of this many programs a worker one decides how long the end takes: two of the smallest chunks. */
const programsOfTheEnd = 10;
/** How long a worker is free between two batches, where batches wait that have none. Seen in the simulation. */
const handoverMs = 150;
/** Admission, the first lease, a round trip to a worker and the answer's record. Seen in the simulation. */
const fixedMs = 150;
/** Until a batch has twice as many workers: it asks for several side by side. Seen in the simulation. */
const recruitMs = 23;

/** How long the slowest program takes: all its cases run into their time limit, on as many workers as that needs. */
export const slowestProgramMs = timeLimitMs;

/**
 * Workers that a step needs: `programs` of so many CPU seconds each must be graded within `waitS` seconds, of which the
 * slowest program may need `slowestS` at the end.
 */
export function chooseWorkers(step: {
  readonly programs: number;
  readonly cpuSecondsPerProgram: number;
  readonly waitS: number;
  readonly slowestS: number;
}): number {
  const { programs, cpuSecondsPerProgram, waitS, slowestS } = step;
  if (waitS <= slowestS) throw new RangeError("a step can't wait for less than its slowest program takes");
  return Math.ceil((programs * cpuSecondsPerProgram) / (slotsPerWorker * utilisation * (waitS - slowestS)));
}

/** The number of workers at which what they cost and what waits for them cost least together, by the hour. */
export function cheapestWorkers(step: {
  readonly cpuSeconds: number;
  /** Between two batches. */
  readonly thinkS: number;
  readonly trainerUsdPerHour: number;
  readonly workerUsdPerHour: number;
}): number {
  const { cpuSeconds, thinkS, trainerUsdPerHour, workerUsdPerHour } = step;
  return Math.sqrt((trainerUsdPerHour * cpuSeconds) / (slotsPerWorker * workerUsdPerHour * thinkS));
}

/** From when a step's batches are sent until the last of them is answered. */
export function predictStepMs({ workers, samples, batches }: Point): number {
  const programs = samples * batches;
  const perBatch = Math.min(workers, Math.ceil((samples * casesPerProgram) / casesPerWorker));
  const used = Math.min(workers, perBatch * batches);
  const computingMs = (programs * meanProgramCpuMs()) / (slotsPerWorker * utilisation * used);
  const takingTurnsMs = handoverMs * ((perBatch * batches) / used - 1) * Math.max(0, 1 - workers / batches);
  const gettingReadyMs = fixedMs + samples * handlerCpuMs.perSample + recruitMs * Math.log2(perBatch);
  return (
    gettingReadyMs + computingMs + takingTurnsMs + expectEndMs(Math.min(programs, programsOfTheEnd * used))
  );
}

/** How long the end takes when one of so many programs may be a slow one. */
function expectEndMs(programs: number): number {
  const { endless, slow } = programMix;
  const anyEndless = 1 - (1 - endless) ** programs;
  const anySlow = 1 - (1 - slow.share) ** programs;
  const slowMs = (slow.caseMs[0] + slow.caseMs[1]) / 2;
  return anyEndless * slowestProgramMs + (1 - anyEndless) * anySlow * slowMs;
}
