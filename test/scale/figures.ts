/** What one point comes to. */
import type { Observed, Point } from "./load.ts";
import { type Cost, costOf } from "./prices.ts";

export interface Figures extends Point {
  /** In a step, while anything of it is being graded. */
  readonly programsPerSecond: number;
  /** Until a batch has its first worker. */
  readonly queueMsP50: number;
  readonly queueMsP95: number;
  readonly batchMsP50: number;
  readonly batchMsP95: number;
  readonly stepMsMean: number;
  /** From a step's first worker until it has had as many as there are. */
  readonly crewMs: number;
  /** Of the CPUs of all workers, while a step is graded. */
  readonly busyWhileGraded: number;
  /** Of what is paid for, the time between steps included. */
  readonly idleShare: number;
  readonly workerSecondsPer1000: number;
  readonly tableRequestsPerBatch: number;
  /** Of the pool's partition, which has 3,000; in the busiest second. */
  readonly mostReadUnitsPerS: number;
  readonly lambdaMsPerBatch: number;
  readonly requestsPerProgram: number;
  readonly per1000: Cost;
  /** Samples without a reward: there should be none. */
  readonly faults: number;
  readonly violations: readonly string[];
  readonly events: number;
}

export function figuresOf(observed: Observed, slotsPerWorker: number): Figures {
  const { point, batches, stepsMs, crewMs, paidMs, busyMs, handlers, sweeps } = observed;
  const programs = sum(batches.map((batch) => batch.programs));
  const gradedMs = sum(stepsMs);
  const lambdaMs = sum(batches.map(({ wallMs }) => wallMs));
  const per = (of: number) => of / programs;
  return {
    ...point,
    programsPerSecond: programs / (gradedMs / 1_000),
    ...quantiles(
      "queueMs",
      batches.map(({ queueMs }) => queueMs),
    ),
    ...quantiles(
      "batchMs",
      batches.map(({ wallMs }) => wallMs),
    ),
    stepMsMean: gradedMs / stepsMs.length,
    crewMs,
    busyWhileGraded: busyMs / (slotsPerWorker * point.workers * gradedMs),
    idleShare: 1 - busyMs / (slotsPerWorker * paidMs),
    workerSecondsPer1000: per(paidMs),
    tableRequestsPerBatch: handlers.tableRequests / batches.length,
    mostReadUnitsPerS: observed.mostReadUnitsPerS,
    lambdaMsPerBatch: lambdaMs / batches.length,
    requestsPerProgram: per(observed.chunks + handlers.controlRequests + sweeps.controlRequests),
    per1000: costOf({
      workerSeconds: per(paidMs),
      lambdaSeconds: per(lambdaMs),
      lambdaRequests: per(batches.length) * 1_000,
      writeUnits: per(handlers.writeUnits + sweeps.writeUnits) * 1_000,
      readUnits: per(handlers.readUnits + sweeps.readUnits) * 1_000,
    }),
    faults: sum(batches.map(({ faults }) => faults)),
    violations: observed.violations,
    events: observed.events,
  };
}

function quantiles<Name extends "queueMs" | "batchMs">(name: Name, values: readonly number[]) {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (part: number) => sorted[Math.ceil(part * sorted.length) - 1] ?? 0;
  return { [`${name}P50`]: at(0.5), [`${name}P95`]: at(0.95) } as Record<`${Name}P50` | `${Name}P95`, number>;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
