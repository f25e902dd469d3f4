/** Many worlds, one after another, and what became of them all together. */
import { contend, countWrites } from "./quiet.ts";
import { simulate } from "./simulation.ts";
import { type Counts, noCounts, type Violation } from "./watch.ts";
import type { Weather } from "./weather.ts";

export interface SimulationsOptions {
  readonly batches: number;
  /** Of the first world; the next has the next. */
  readonly seed: number;
  /** No world is begun after so many seconds. */
  readonly seconds?: number;
  /** For all worlds; otherwise by the seed. */
  readonly weather?: Weather;
  readonly onViolation?: (violation: Violation) => void;
}

export interface SimulationsReport extends Counts {
  readonly seed: number;
  readonly worlds: number;
  readonly byWeather: Readonly<Record<string, { worlds: number; batches: number }>>;
  /** The first of each kind in each world. */
  readonly violations: readonly Violation[];
  readonly longestAfterFinishS: number;
  readonly longestAfterBeatS: number;
  /** Of equal callers in a world without faults. */
  readonly jain: number;
  readonly medianWaitMs: number;
  readonly longestWaitMs: number;
  /** Of batches in a world without faults. */
  readonly writes: number;
  readonly allowedWrites: number;
  readonly simulatedHours: number;
  readonly events: number;
  readonly cpuSeconds: number;
  readonly batchesPerCpuSecond: number;
}

export async function runSimulations(options: SimulationsOptions): Promise<SimulationsReport> {
  const { seconds = Number.POSITIVE_INFINITY, onViolation = () => {} } = options;
  const startedAtMs = performance.now();
  const cpuBefore = process.cpuUsage();
  const counts = noCounts();
  const byWeather: Record<string, { worlds: number; batches: number }> = {};
  const violations: Violation[] = [];
  let [worlds, longestAfterFinishMs, longestAfterBeatMs, simulatedMs, events] = [0, 0, 0, 0, 0];
  const note = (found: readonly Violation[]) => {
    violations.push(...found);
    for (const violation of found) onViolation(violation);
  };

  const fair = await contend(options.seed);
  const cost = await countWrites(options.seed, 1_000);
  note(fair.violations);
  note(cost.violations);
  if (fair.jain < 0.9) note([broken("equal callers are served unequally", options.seed)]);
  if (fair.longestWaitMs > 4 * fair.medianWaitMs) note([broken("a caller waits for too long", options.seed)]);
  if (cost.writes > cost.allowedWrites) note([broken("too many table writes", options.seed)]);

  while (counts.batches < options.batches && performance.now() - startedAtMs < seconds * 1_000) {
    const { weather, seed } = options;
    const world = await simulate({ seed: seed + worlds, ...(weather === undefined ? {} : { weather }) });
    worlds += 1;
    for (const name of Object.keys(counts) as (keyof Counts)[]) counts[name] += world.counts[name];
    const ofWeather = byWeather[world.world] ?? { worlds: 0, batches: 0 };
    byWeather[world.world] = {
      worlds: ofWeather.worlds + 1,
      batches: ofWeather.batches + world.counts.batches,
    };
    longestAfterFinishMs = Math.max(longestAfterFinishMs, world.longestAfterFinishMs);
    longestAfterBeatMs = Math.max(longestAfterBeatMs, world.longestAfterBeatMs);
    simulatedMs += world.simulatedMs;
    events += world.events;
    note(world.violations);
  }

  const cpu = process.cpuUsage(cpuBefore);
  const cpuSeconds = (cpu.user + cpu.system) / 1e6;
  const all = counts.batches + fair.batches + cost.batches;
  return {
    ...counts,
    seed: options.seed,
    worlds,
    byWeather,
    violations,
    longestAfterFinishS: Math.round(longestAfterFinishMs / 1_000),
    longestAfterBeatS: Math.round(longestAfterBeatMs / 1_000),
    jain: fair.jain,
    medianWaitMs: fair.medianWaitMs,
    longestWaitMs: fair.longestWaitMs,
    writes: cost.writes,
    allowedWrites: cost.allowedWrites,
    simulatedHours: Math.round(simulatedMs / 3_600_000),
    events,
    cpuSeconds: Math.round(cpuSeconds),
    batchesPerCpuSecond: Math.round(all / cpuSeconds),
  };
}

function broken(what: string, seed: number): Violation {
  return { what, world: "calm", seed, atS: 0, trace: [] };
}
