/**
 * How much one request to a worker carries.
 *
 * Guided self-scheduling: a free worker gets a share of what is still waiting, so chunks are large while there is much
 * to do (few requests) and small towards the end (nobody waits for a straggler).
 */
export const chunkLimits = {
  /** A chunk is this part of what a worker would get if all shared what waits: more is steadier, and more requests. */
  sharesPerWorker: 1.4,
  /** Below so many programs a chunk isn't worth a request, unless its cases are many. */
  smallestPrograms: 5,
  smallestCases: 48,
  largestCases: 512,
  /** Of a request, as it is sent; only one that holds a single case may be larger. */
  largestBytes: 4 * 1024 * 1024,
} as const;

export interface ChunkFill {
  readonly programs: number;
  readonly cases: number;
}

/** The number of cases to aim for when `queuedCases` wait and `workers` share them. */
export function aimForCases(queuedCases: number, workers: number): number {
  return Math.min(
    chunkLimits.largestCases,
    Math.ceil(queuedCases / (chunkLimits.sharesPerWorker * Math.max(1, workers))),
  );
}

/** Whether no further program should be added, as far as the aim goes; what may not be exceeded is seen to case by case. */
export function isChunkFull(fill: ChunkFill, aimCases: number): boolean {
  if (fill.cases < aimCases) return false;
  return fill.programs >= chunkLimits.smallestPrograms || fill.cases >= chunkLimits.smallestCases;
}

/**
 * How many of a program's waiting cases a chunk may take. Small programs are never split: each part is compiled anew.
 */
export function shareOfProgram(waitingCases: number, fill: ChunkFill, aimCases: number): number {
  const room = chunkLimits.largestCases - fill.cases;
  if (waitingCases <= chunkLimits.smallestCases) return Math.min(waitingCases, room);
  return Math.min(waitingCases, room, Math.max(aimCases - fill.cases, chunkLimits.smallestCases));
}
