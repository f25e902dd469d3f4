/**
 * What the simulated outside is like. Everything here is assumed, or measured elsewhere and written down; all else is
 * the product's own code.
 */
import type { Latencies } from "../simulation/cloud.ts";

/** E2B: a creation takes 0.3–2 s, a round trip 20–100 ms. DynamoDB, in its own region: 4–10 ms a round trip. */
export const latencies: Latencies = {
  tableWayMs: [2, 5],
  creationMs: [300, 2_000],
  readinessMs: [500, 1_500],
  workerWayMs: [10, 50],
};

/** A worker runs a case per CPU at a time; E2B's default template has two. */
export const slotsPerWorker = 2;

/**
 * CPU that a case costs besides what its program computes: a process, its isolation, its streams. `npm run bench`
 * measured 16.6 ms for a program of three cases (64 programs, whole process trees), its own work and the endpoint's
 * among it.
 */
export const caseOverheadCpuMs = 4;

/**
 * CPU of a handler, which has one vCPU (1,769 MiB): reading a sample and planning it, and reading a line of a worker's
 * answer and what comes of it. Together 0.5 ms for a sample of three cases.
 */
export const handlerCpuMs = { perSample: 0.2, perLine: 0.05 };

/** A recorded answer has so many bytes a sample, compressed. */
export const answerBytesPerSample = 40;
/** What reaching a worker takes in its slot's row. */
export const accessBytes = 130;

/** DynamoDB's limit for one partition, bursts apart. */
export const readUnitsPerS = 3_000;

export const casesPerProgram = 3;
export const timeLimitMs = 2_000;

/**
 * Programs as a model writes them in the middle of a training: most are quick, a few compute for a second, a few never
 * end. The times are CPU of each of a program's cases, Python's own start included.
 */
export const programMix = {
  syntaxErrors: 0.05,
  endless: 0.01,
  slow: { share: 0.02, caseMs: [500, 1_500] },
  /** All others: at least this, and beyond it exponential with this mean. */
  quick: { leastMs: 10, meanBeyondMs: 20 },
} as const;

/** How long a trainer generates and learns between two answers. */
export const thinkMs = 60_000;
/** Ranks that end a step together don't do so in the same moment. */
export const rankSkewMs = 200;
