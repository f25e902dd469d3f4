/** One simulated world: a table, a provider, and whoever works with them, all from one seed. */
import type { BatchClaim } from "../../functions/pool/batches/batch-record.ts";
import type { StoredRow, Table } from "../../functions/pool/ports.ts";
import { noteBatchExpression } from "../../functions/pool/runs/ledger.ts";
import { runColumns, runLifeMs, runPrefix } from "../../functions/pool/runs/run-row.ts";
import { type PoolSettings, plans, poolSettings } from "../../functions/pool/settings.ts";
import { readSlotRow, type SlotRow, slotColumns, slotKey } from "../../functions/pool/slot-row.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import { createMemoryTable, type MemoryTable } from "../pool/memory-table.ts";
import { createCloud, type Latencies, type SimulatedCloud, type Supervise, usualLatencies } from "./cloud.ts";
import { fenceViolation } from "./fences.ts";
import { rightClocks, setWrongClock } from "./incidents.ts";
import { type SimulatedProcess, startProcess } from "./process.ts";
import { createSimulatedTime, type SimulatedTime } from "./simulated-time.ts";
import { createTaints } from "./taints.ts";
import { createTold, type Told } from "./told.ts";
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
  readonly told: Told;
  /** Batches that somebody has begun to cancel. */
  readonly cancelled: Set<string>;
  /** Handlers that are alive. */
  readonly handlers: Set<SimulatedProcess>;
  /** Processes whose clocks are wrong. */
  readonly wrongClocks: Set<SimulatedProcess>;
  weather(): Weather;
  /** Lays odds over the weather's own, in the place of those that were laid over it before. */
  changeOdds(odds: Partial<Weather>): void;
  /** Nothing fails any more. */
  clearUp(): void;
  isLoaded(): boolean;
  /** What fails from now on for so long, and what is due to it then, is nobody's fault. */
  beInTrouble(forMs: number, isSeen?: boolean): void;
  /** Whether nothing has failed since; or nothing but what the provider's list and the table tell the truth about. */
  isQuietSince(atMs: number, what?: "all" | "unseen"): boolean;
  newId(): string;
  startProcess(name: string, odds: ProcessOdds): SimulatedProcess;
  /** From now on processes are started with that version of the supervisor. */
  deploy(version: string): void;
  version(): string;
  /** Since when. */
  deployedAtMs(): number;
  slots(): SlotRow[];
  contextOf(process: SimulatedProcess): SweepContext;
  isFinished(runId: string): boolean;
  noteServed(runId: string, served: boolean): void;
  noteLease(slot: number, fence: number, sandboxId: string): void;
  /** Its holder says that the worker is of no use to anybody. */
  noteBroken(slot: number, fence: number, sandboxId: string): void;
  /** An attempt at a batch with a key has begun. */
  noteBeginning(claim: BatchClaim, isByRightClock: boolean): void;
  /** By somebody's wrong clock its record is kept for less than it should be, or was kept for long enough. */
  noteForgettable(batchId: string): void;
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

/** Clocks differ by less, unless one is wrong. */
const wrongFromMs = 8_000;
const slotPrefix = "S#";
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
  const checkWrite = createWriteCheck(time, watch, settings, options.weather.handlers.skewMs);
  const slotRows = new Map<string, StoredRow>();
  const truth = createMemoryTable(
    () => time.sleep(leastWayMs + Math.floor(random() * (mostWayMs - leastWayMs + 1))),
    (verb, sk, after, before) => {
      if (sk.startsWith(slotPrefix)) slotRows.set(sk, after);
      if (verb === noteBatchExpression.name) noteBatch(runs, String(after.pk).slice(2), time.nowMs());
      else if (sk.startsWith(runPrefix)) noteRun(runs, sk.slice(runPrefix.length), after, time.nowMs());
      else checkWrite(verb, sk, after, before);
    },
  );
  const rowOf = (slot: number) => {
    const stored = slotRows.get(slotKey(slot).sk);
    return stored === undefined ? null : readSlotRow(stored);
  };
  const taints = createTaints(slotRows);
  let weather = options.weather;
  let version = settings.supervisorVersion;
  let deployedAtMs = Number.NEGATIVE_INFINITY;
  const troubleUntilMs = { all: Number.NEGATIVE_INFINITY, unseen: Number.NEGATIVE_INFINITY };
  const parts = { time, random, watch, weather: () => weather };
  const cloud = createCloud({
    ...parts,
    slots: settings.slots,
    lifeMs: settings.lifeMs,
    latencies,
    ...(supervise === undefined ? {} : { supervise }),
    isTainted: taints.has,
    isReserved(slot, generation) {
      const row = rowOf(slot);
      return row?.generation === generation && row.state !== "empty";
    },
    isWanted: ({ slot, sandboxId }) => {
      const row = rowOf(slot);
      return row?.sandboxId === sandboxId && row.state === "ready" && isWanted(world);
    },
    isBeingCreated(slot, generation) {
      const row = rowOf(slot);
      const isInTime = (row?.leaseUntilMs ?? 0) > time.nowMs();
      return row?.state === "creating" && row.generation === generation && isInTime;
    },
  });
  const table = createUnreliableTable(options.mutate?.(truth) ?? truth, parts);
  const leases = new Set<string>();
  const broken = new Set<string>();
  const forgettable = new Set<string>();
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
    told: createTold(),
    cancelled: new Set(),
    handlers: new Set(),
    wrongClocks: new Set(),
    changeOdds: (odds) => {
      if (isLoaded) weather = { ...options.weather, ...odds };
    },
    clearUp: () => {
      weather = { ...calm, name: weather.name };
      isLoaded = false;
      rightClocks(world);
    },
    isLoaded: () => isLoaded,
    beInTrouble: (forMs, isSeen = false) => {
      troubleUntilMs.all = Math.max(troubleUntilMs.all, time.nowMs() + forMs);
      if (!isSeen) troubleUntilMs.unseen = Math.max(troubleUntilMs.unseen, time.nowMs() + forMs);
    },
    isQuietSince: (atMs, what = "all") => options.weather.isMended && troubleUntilMs[what] <= atMs,
    deploy: (next) => {
      version = next;
      deployedAtMs = time.nowMs();
    },
    version: () => version,
    deployedAtMs: () => deployedAtMs,
    slots: () => [...slotRows.values()].flatMap((row) => readSlotRow(row) ?? []),
    newId: () => (ids++).toString(36).padStart(8, "0"),
    startProcess(name, odds) {
      const process = startProcess(parts, name, odds, version);
      if (weather.wrongClock > 0 && random() < weather.wrongClock) setWrongClock(world, process);
      return process;
    },
    contextOf: (process) => ({
      table: process.table(taints.watch(process, table)),
      clock: process.clock,
      newId: world.newId,
      random,
      settings: { ...settings, supervisorVersion: process.supervisorVersion },
      workers: process.workers(cloud.workersFor(process)),
      sandboxes: process.sandboxes(cloud.sandboxes),
      poolId: async () => poolId,
    }),
    isFinished: (runId) => (runs.get(runId)?.finishedAtMs ?? null) !== null,
    noteServed: (_runId, served) => {
      if (served) watch.counts.batches += 1;
    },
    noteBroken: (slot, fence, sandboxId) => {
      // Who lost it to another can't say; and if the table does not take it, the next one finds it out.
      const row = rowOf(slot);
      if (!weather.isMended || weather.tableFault > 0) return;
      if (row?.state === "leased" && row.fence === fence) broken.add(sandboxId);
    },
    noteLease: (slot, fence, sandboxId) => {
      if (broken.has(sandboxId)) watch.violation("a broken worker is given out again", sandboxId);
      const name = `${slot}/${fence}`;
      if (leases.has(name)) watch.violation("a fence given twice", name);
      leases.add(name);
    },
    noteBeginning({ batchId, fence }, isByRightClock) {
      if (!isByRightClock) world.noteForgettable(batchId);
      const answer = answers.get(batchId);
      if (answer !== undefined && fence > Number(answer.split(" ")[0]))
        watch.violation("an answer was lost", batchId);
    },
    noteForgettable(batchId) {
      forgettable.add(batchId);
      answers.delete(batchId);
      world.told.mayRepeat(batchId);
    },
    noteAnswer(batchId, answer) {
      if (forgettable.has(batchId)) return;
      const known = answers.get(batchId) ?? answer;
      if (known !== answer) watch.violation("two answers for one key", `${known}, ${answer}`);
      answers.set(batchId, known);
    },
  };
  return world;
}

/** Whether the runs want all the workers that there are. */
function isWanted({ slots, runs, settings, time }: World): boolean {
  const there = slots().filter(({ state }) => state === "ready" || state === "leased").length;
  return there <= wantedWorkers(runs, settings.slots, time.nowMs());
}

/** How many workers the runs want together that live now. */
export function wantedWorkers(runs: World["runs"], slots: number, nowMs: number): number {
  let wanted = 0;
  for (const { workers, beatAtMs, finishedAtMs } of runs.values())
    if (finishedAtMs === null && beatAtMs + runLifeMs > nowMs) wanted += workers;
  return Math.min(slots, wanted);
}

/** A batch is a sign of life. */
function noteBatch(runs: Map<string, RunTruth>, runId: string, nowMs: number): void {
  const run = runs.get(runId);
  if (run !== undefined) run.beatAtMs = Math.max(run.beatAtMs, nowMs);
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
function createWriteCheck(time: SimulatedTime, watch: Watch, settings: PoolSettings, skewMs: number) {
  let nextCreateAtMs = 0;
  return (verb: string, sk: string, after: StoredRow, before: StoredRow | undefined): void => {
    if (verb === "admit creation") {
      const next = Number(after.next);
      if (Math.abs(next - time.nowMs()) > settings.createIntervalMs + wrongFromMs) {
        nextCreateAtMs = 0; // by a clock that is wrong: the pace begins anew
        return;
      }
      if (next < nextCreateAtMs + settings.createIntervalMs - 2 * skewMs)
        watch.violation("created too fast", `${nextCreateAtMs - next} ms`);
      nextCreateAtMs = Math.max(nextCreateAtMs, next);
    }
    if (!sk.startsWith(slotPrefix)) return;
    const violation = fenceViolation(verb, before, after);
    if (violation !== null) watch.violation(violation, `${verb} ${sk}`);
    watch.note("table", `${verb} ${sk} → ${after[slotColumns.state]} fence ${after[slotColumns.fence]}`);
  };
}
