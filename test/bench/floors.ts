/** What the bench must show, or it fails: ratios of one run, which a slow or busy machine leaves as they are. */
import type { Figures } from "./figures.ts";

export interface LoadFigures {
  readonly endpoint: Figures;
  readonly recipe?: Figures;
}

export interface Floor {
  readonly what: string;
  readonly measured: number;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly isHeld: boolean;
}

export function judgeFloors(
  figures: ReadonlyMap<string, LoadFigures>,
  requestsPerProgram: number,
): readonly Floor[] {
  const of = (load: string): LoadFigures => {
    const found = figures.get(load);
    if (!found) throw new Error(`«${load}» was not measured`);
    return found;
  };
  const faster = (load: string) =>
    of(load).endpoint.programs_per_second / (of(load).recipe?.programs_per_second ?? Number.NaN);
  const lighter = (load: string) =>
    (of(load).recipe?.cpu_seconds_per_program ?? Number.NaN) / of(load).endpoint.cpu_seconds_per_program;
  const recipeCost = of("64 programs").recipe?.cpu_seconds_per_program ?? Number.NaN;
  const long = of("1 program × 100 cases").endpoint.wall_seconds_p50;
  const short = of("100 programs × 1 case").endpoint.wall_seconds_p50;
  return [
    // As published it costs 0.31 to 0.34. A cheaper one is the harder to beat; a dearer one would prove nothing.
    atMost("64 programs: the recipe's CPU seconds a program", recipeCost, 0.4),
    atLeast("64 programs: times the recipe's programs a second", faster("64 programs"), 5.5),
    atLeast("64 programs: the recipe's CPU to ours", lighter("64 programs"), 7),
    atLeast(
      "64, of which 24 differ: times the recipe's programs a second",
      faster("64, of which 24 differ"),
      14,
    ),
    atLeast("1 program: times as fast as the recipe", faster("1 program"), 8),
    atMost("64 programs: CPU seconds a program", of("64 programs").endpoint.cpu_seconds_per_program, 0.045),
    atMost("64 programs: requests a program", requestsPerProgram, 0.2),
    atMost("1 program × 100 cases: times the time of 100 programs × 1 case", long / short, 1.3),
  ];
}

const atLeast = (what: string, measured: number, bound: number): Floor => ({
  what,
  measured,
  atLeast: bound,
  isHeld: measured >= bound,
});

export const atMost = (what: string, measured: number, bound: number): Floor => ({
  what,
  measured,
  atMost: bound,
  isHeld: measured <= bound,
});
