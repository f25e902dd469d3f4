/** One simulated world: a table, a provider, and whoever works with them, all from one seed. */
import type { BatchClaim } from "../../functions/pool/batches/batch-record.ts";
import type { StoredRow, Table } from "../../functions/pool/ports.ts";
import { runColumns, runPrefix } from "../../functions/pool/runs/run-row.ts";
import { type PoolSettings, plans, poolSettings } from "../../functions/pool/settings.ts";
import { readSlotRow, slotColumns, slotKey } from "../../functions/pool/slot-row.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import { createMemoryTable, type MemoryTable } from "../pool/memory-table.ts";
import { createCloud, type Latencies, type SimulatedCloud, type Supervise, usualLatencies } from "./cloud.ts";
import { fenceViolation } from "./fences.ts";
import { type SimulatedProcess, startProcess } from "./process.ts";
import { createSimulatedTime, type SimulatedTime } from "./simulated-time.ts";
import { createUnreliableTable } from "./unreliable-table.ts";
import { createWatch, type Watch } from "./watch.ts";
import { calm, type ProcessOdds, type Weather } from "./weather.ts";

/** What is true of a run, whoever knows it. */
export interface RunTruth {
  workers: number;
  beatAtMs: number;
  finishedAtMs: number | null;
}

export interface World {
  readonly seed: number;
  readonly time: SimulatedTime;
  readonly random: () => number;
  readonly watch: Watch;
  readonly cloud: SimulatedCloud;
  readonly settings: PoolSettings;
  /** The table without its faults. */
  readonly truth: MemoryTable;
  readonly runs: ReadonlyMap<string, RunTruth>;
  /** Batches that somebody has begun to cancel. */
  readonly cancelled: Set<string>;
  weather(): Weather;
  /** Nothing fails any more. */
  clearUp(): void;
  isLoaded(): boolean;
  newId(): string;
  startProcess(name: string, odds: ProcessOdds): SimulatedProcess;
  contextOf(process: SimulatedProcess): SweepContext;
  isFinished(runId: string): boolean;
  noteServed(runId: string, served: boolean): void;
  noteLease(slot: number, fence: number): void;
  /** An attempt at a batch with a key has begun. */
  noteBeginning(claim: BatchClaim): void;
  /** A caller was told this answer: all callers of the key are told the same, and nothing runs for it any more. */
  noteAnswer(batchId: string, answer: string): void;
}

export interface WorldOptions {
  readonly seed: number;
  readonly weather: Weather;
  readonly settings: Partial<PoolSettings> & { readonly slots: number };
  readonly mutate?: (table: Table) => Table;
  readonly latencies?: Latencies;
  readonly supervise?: Supervise;
}

const startMs = 1_800_000_000_000;
const poolId = "pool-1";

/** Seeded random numbers in [0, 1) (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function createWorld(options: WorldOptions): World {
  const { seed, latencies = usualLatencies, supervise } = options;
  const [leastWayMs, mostWayMs] = latencies.tableWayMs;
  const random = seeded(seed);
  const time = createSimulatedTime(startMs);
  const watch = createWatch(time, options.weather.name, seed);
  const settings = poolSettings(plans.hobby, { supervisorVersion: "v1", ...options.settings });
  const runs = new Map<string, RunTruth>();
  const checkWrite = createWriteCheck(watch, settings, options.weather.handlers.skewMs);
  const truth = createMemoryTable(
    () => time.sleep(leastWayMs + Math.floor(random() * (mostWayMs - leastWayMs + 1))),
    (verb, sk, after, before) => {
      if (sk.startsWith(runPrefix)) noteRun(runs, sk.slice(runPrefix.length), after, time.nowMs());
      else checkWrite(verb, sk, after, before);
    },
  );
  let weather = options.weather;
  const parts = { time, random, watch, weather: () => weather };
  const cloud = createCloud({
    ...parts,
    slots: settings.slots,
    lifeMs: settings.lifeMs,
    latencies,
    ...(supervise === undefined ? {} : { supervise }),
    isBeingCreated(slot, generation) {
      const { sk } = slotKey(slot);
      const stored = truth.rows().find((row) => row.sk === sk);
      const row = stored === undefined ? null : readSlotRow(stored);
      const isInTime = (row?.leaseUntilMs ?? 0) > time.nowMs();
      return row?.state === "creating" && row.generation === generation && isInTime;
    },
  });
  const table = createUnreliableTable(options.mutate?.(truth) ?? truth, parts);
  const leases = new Set<string>();
  const answers = new Map<string, string>();
  let ids = 0;
  let isLoaded = true;

  const world: World = {
    ...parts,
    seed,
    cloud,
    settings,
    truth,
    runs,
    cancelled: new Set(),
    clearUp: () => {
      weather = { ...calm, name: weather.name };
      isLoaded = false;
    },
    isLoaded: () => isLoaded,
    newId: () => (ids++).toString(36).padStart(8, "0"),
    startProcess: (name, odds) => startProcess(parts, name, odds),
    contextOf: (process) => ({
      table: process.table(table),
      clock: process.clock,
      newId: world.newId,
      random,
      settings,
      workers: process.workers(cloud.workersFor(process)),
      sandboxes: process.sandboxes(cloud.sandboxes),
      poolId: async () => poolId,
    }),
    isFinished: (runId) => (runs.get(runId)?.finishedAtMs ?? null) !== null,
    noteServed: (_runId, served) => {
      if (served) watch.counts.batches += 1;
    },
    noteLease: (slot, fence) => {
      const name = `${slot}/${fence}`;
      if (leases.has(name)) watch.violation("a fence given twice", name);
      leases.add(name);
    },
    noteBeginning({ batchId, fence }) {
      const answer = answers.get(batchId);
      if (answer !== undefined && fence > Number(answer.split(" ")[0]))
        watch.violation("an answer was lost", batchId);
    },
    noteAnswer(batchId, answer) {
      const known = answers.get(batchId) ?? answer;
      if (known !== answer) watch.violation("two answers for one key", `${known}, ${answer}`);
      answers.set(batchId, known);
    },
  };
  return world;
}

function noteRun(runs: Map<string, RunTruth>, runId: string, row: StoredRow, nowMs: number): void {
  const isFinished = row[runColumns.finishedAtMs] !== undefined;
  const known = runs.get(runId);
  runs.set(runId, {
    workers: Number(row[runColumns.workers]),
    beatAtMs: Number(row[runColumns.beatAtMs]),
    finishedAtMs: isFinished ? (known?.finishedAtMs ?? nowMs) : null,
  });
}

/** Fences never fall and grow with each taking; creations keep the plan's pace, as far as clocks agree. */
function createWriteCheck(watch: Watch, settings: PoolSettings, skewMs: number) {
  let nextCreateAtMs = 0;
  return (verb: string, sk: string, after: StoredRow, before: StoredRow | undefined): void => {
    if (verb === "admit creation") {
      const next = Number(after.next);
      if (next < nextCreateAtMs + settings.createIntervalMs - 2 * skewMs)
        watch.violation("created too fast", `${nextCreateAtMs - next} ms`);
      nextCreateAtMs = Math.max(nextCreateAtMs, next);
    }
    if (!sk.startsWith("S#")) return;
    const violation = fenceViolation(verb, before, after);
    if (violation !== null) watch.violation(violation, `${verb} ${sk}`);
    watch.note("table", `${verb} ${sk} → ${after[slotColumns.state]} fence ${after[slotColumns.fence]}`);
  };
}
