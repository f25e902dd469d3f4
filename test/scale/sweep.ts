/** All points, each with what the rule had said of it. */

import type { Figures } from "./figures.ts";
import { alonePoints, crowdPoints } from "./grid.ts";
import { type Point, runPoint } from "./load.ts";
import { predictStepMs } from "./rule.ts";

export interface PointReport extends Figures {
  readonly predictedStepMs: number;
  /** How far that is from what was simulated, as a part of it. */
  readonly error: number;
}

export interface SweepReport {
  readonly seed: number;
  readonly alone: readonly PointReport[];
  readonly crowds: readonly PointReport[];
}

export async function reportPoint(point: Point, seed: number): Promise<PointReport> {
  const figures = await runPoint(point, seed);
  const predictedStepMs = predictStepMs(point);
  return { ...figures, predictedStepMs, error: predictedStepMs / figures.stepMsMean - 1 };
}

/** Each point is a world of its own, from the same seed: they differ in what they are, not in their luck. */
export async function sweep(seed: number, onPoint: (report: PointReport) => void): Promise<SweepReport> {
  const reportAll = async (points: readonly Point[]) => {
    const reports: PointReport[] = [];
    for (const point of points) {
      const report = await reportPoint(point, seed);
      onPoint(report);
      reports.push(report);
    }
    return reports;
  };
  return { seed, alone: await reportAll(alonePoints), crowds: await reportAll(crowdPoints) };
}
