/** Whether a process holds more and more. */
import type { Vitals } from "./stack-under-test.ts";

export type TimedVitals = Vitals & { readonly atS: number };

const mib = 1_048_576;

/** By how much each may be higher in the last quarter than in the second one, by their medians. */
const allowed: Readonly<Record<keyof Vitals, (before: number) => number>> = {
  heapBytes: (before) => before * 1.2 + 6 * mib,
  rssBytes: (before) => before * 1.3 + 60 * mib,
  sockets: (before) => before * 1.5 + 30,
  descriptors: (before) => before + 5,
  timers: (before) => before * 2 + 40,
};

/** What a process may keep when nothing is asked of it: connections for the next request. */
const mostQuiet: Partial<Vitals> = { sockets: 80, timers: 60 };

/** Everything that has grown; the first quarter is for warming up. */
export function findGrowth(vitals: readonly TimedVitals[], quiet: Vitals): string[] {
  const problems: string[] = [];
  const quarter = Math.floor(vitals.length / 4);
  for (const name of Object.keys(allowed) as (keyof Vitals)[]) {
    const [before, after] = [vitals.slice(quarter, 2 * quarter), vitals.slice(-quarter)].map((part) =>
      median(part.map((each) => each[name])),
    );
    if (quarter > 0 && before !== undefined && after !== undefined && after > allowed[name](before))
      problems.push(`${name} grew from ${before} to ${after}`);
    const most = mostQuiet[name];
    if (most !== undefined && quiet[name] > most) problems.push(`${name}: ${quiet[name]} when it is quiet`);
  }
  return problems;
}

/** How much a value grows in a minute, by the line of least squares through all but the first quarter. */
export function slopePerMinute(vitals: readonly TimedVitals[], name: keyof Vitals): number {
  const points = vitals.slice(Math.floor(vitals.length / 4));
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(points.map(({ atS }) => atS)), mean(points.map((each) => each[name]))];
  const above = points.reduce((sum, each) => sum + (each.atS - x) * (each[name] - y), 0);
  const below = points.reduce((sum, each) => sum + (each.atS - x) ** 2, 0);
  return below === 0 ? 0 : (above / below) * 60;
}

function median(values: readonly number[]): number | undefined {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
