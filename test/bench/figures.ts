/** From rounds to the figures that are compared. */
import type { Round } from "./measurement.ts";

export interface Figures {
  readonly wall_seconds_p50: number;
  readonly wall_seconds_p95: number;
  readonly programs_per_second: number;
  readonly cpu_seconds_per_program: number;
  readonly peak_mib: number;
}

/** The figures of one load; `programs` is the number of its samples. Medians over rounds, but for the peak. */
export function figuresOf(rounds: readonly Round[], programs: number): Figures {
  const walls = rounds.map(({ wallSeconds }) => wallSeconds);
  const wall = percentile(walls, 0.5);
  const cpu = percentile(
    rounds.map(({ cpuSeconds }) => cpuSeconds),
    0.5,
  );
  return {
    wall_seconds_p50: wall,
    wall_seconds_p95: percentile(walls, 0.95),
    programs_per_second: programs / wall,
    cpu_seconds_per_program: cpu / programs,
    peak_mib: Math.max(...rounds.map(({ peakMib }) => peakMib)),
  };
}

/** The smallest value that at least this part of all values does not exceed. */
export function percentile(values: readonly number[], part: number): number {
  const ordered = values.toSorted((a, b) => a - b);
  return ordered[Math.max(0, Math.ceil(part * ordered.length) - 1)] ?? Number.NaN;
}
