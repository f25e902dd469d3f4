/**
 * Containers, a sweep, a provider and a table in virtual time, everything failing now and then, from one seed.
 *
 * The containers run the product's lease source and the table evaluates the product's expressions. Processes crash and
 * freeze at their calls, answers of the table get lost, clocks differ. After the load the sweep has time to heal.
 */
import { createLeaseSource } from "../../functions/pool/lease-source.ts";
import type { StoredRow, Table } from "../../functions/pool/ports.ts";
import { beatRun } from "../../functions/pool/runs/heartbeat.ts";
import { registerRun } from "../../functions/pool/runs/register.ts";
import { finishRun } from "../../functions/pool/sweep/finish-run.ts";
import { type SweepContext, sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { losingAnswers } from "./broken-table.ts";
import { createHostileCloud } from "./hostile-cloud.ts";
import { createMemoryTable, type MemoryTable } from "./memory-table.ts";
import { type MortalProcess, type Odds, startProcess } from "./mortal-process.ts";
import { seeded, startMs, testSettings } from "./test-pool.ts";
import { createVirtualClock } from "./virtual-clock.ts";

export interface SimulationOptions {
  readonly seed: number;
  readonly containers: number;
  readonly slots: number;
  readonly loadMs: number;
  /** How often the processes fail. */
  readonly odds?: Odds;
  /** How the sweep fails, if not like the others, and how long a pass goes on starting things. */
  readonly sweeps?: { readonly odds: Odds; readonly budgetMs: number };
  /** Changes the table under everybody: a mutant. */
  readonly mutate?: (table: Table) => Table;
}

export interface SimulationResult {
  /** What happened that never may, each once, in order. */
  readonly violations: readonly string[];
  readonly served: number;
  readonly crashes: number;
  readonly lost: number;
  readonly takenOver: number;
  readonly created: number;
  readonly counts: MemoryTable["counts"];
}

const usualOdds: Odds = { crash: 0.006, freeze: 0.004, freezeMs: 200_000, skewMs: 1_000 };
const noOdds: Odds = { crash: 0, freeze: 0, freezeMs: 0, skewMs: 0 };
const poolId = "pool-1";
const runId = "run";

export async function simulate(options: SimulationOptions): Promise<SimulationResult> {
  const random = seeded(options.seed);
  const { odds = usualOdds } = options;
  const { sweeps = { odds, budgetMs: 50_000 } } = options;
  const time = createVirtualClock(startMs);
  const truth = createMemoryTable(() => time.sleep(1 + Math.round(random() * 7)));
  let isLoaded = true;
  const violations = new Set<string>();
  const violation = (what: string) => violations.add(what);
  const cloud = createHostileCloud(time, random, {
    slots: options.slots,
    isCalm: () => !isLoaded,
    violation,
  });
  const settings = testSettings({ slots: options.slots });
  const mutated = (options.mutate ?? ((table: Table) => table))(truth);
  const shared = losingAnswers(mutated, () => random() < 0.02);
  const tally = { served: 0, crashes: 0, lost: 0, takenOver: 0 };
  const leases = new Set<string>();
  let ids = 0;
  const newId = () => (ids++).toString(36).padStart(8, "0");

  async function live(process: MortalProcess): Promise<void> {
    const source = createLeaseSource(
      {
        table: process.table(shared),
        clock: process.clock,
        newId,
        random,
        settings,
        workers: process.workers(cloud.workersFor(process)),
        sandboxes: process.sandboxes(cloud.sandboxes),
        poolId: async () => poolId,
      },
      (event) => {
        if (event.kind === "leased" && event.how === "taken_over") tally.takenOver += 1;
      },
    );
    const stop = new AbortController();
    while (isLoaded && process.isAlive()) {
      const batch = source.forBatch({ runId, batchId: newId() });
      const deadlineAtMs = process.clock.nowMs() + 120_000;
      const lease = await batch.acquire({ deadlineAtMs, signal: stop.signal }).catch(faultOnly);
      if (lease === null) continue;
      const name = `${lease.slot}/${lease.fencingToken}`;
      if (leases.has(name)) violation("a fence given twice");
      leases.add(name);
      const end = await work(lease.execute(chunkOf(random), stop.signal));
      if (end === "completed") tally.served += 1;
      else tally.lost += 1;
      await process.clock.sleep(random() * 500);
      await lease.release(end === "completed" ? "healthy" : "broken");
    }
  }

  async function container(): Promise<void> {
    await time.sleep(random() * 2_000);
    while (isLoaded) {
      const process = startProcess(time, random, odds);
      await Promise.race([live(process), process.crashed]);
      if (!process.isAlive()) tally.crashes += 1;
    }
  }

  /** What a trainer and the clock do each minute: a sign of life of the run, and a pass of the sweep. */
  async function sweepNow(chances: Odds): Promise<void> {
    const process = startProcess(time, random, chances);
    const ctx = sweeper(process);
    const beat = beatRun(ctx, runId).catch(faultOnly);
    const pass = beat.then(() => sweepPool(ctx, { deadlineAtMs: process.clock.nowMs() + sweeps.budgetMs }));
    const report = await Promise.race([pass, process.crashed, time.sleep(55_000)]);
    for (const { code, detail } of report?.faults ?? [])
      if (code === "internal") violation(`a bug of the sweep: ${detail}`);
  }

  function sweeper(process: MortalProcess): SweepContext {
    return {
      table: process.table(shared),
      clock: process.clock,
      newId,
      random,
      settings,
      workers: process.workers(cloud.workersFor(process)),
      sandboxes: process.sandboxes(cloud.sandboxes),
      poolId: async () => poolId,
    };
  }

  async function everyMinute(): Promise<void> {
    while (isLoaded) {
      const nextMs = time.nowMs() + 60_000;
      await sweepNow(sweeps.odds);
      await time.sleep(Math.max(0, nextMs - time.nowMs()));
    }
  }

  async function heal(): Promise<void> {
    for (let minute = 0; minute < 30; minute += 1) {
      await time.sleep(60_000);
      await sweepNow(noOdds);
    }
    for (const what of unhealed(truth.rows(), [...cloud.alive.keys()])) violation(what);
    const finish = await finishRun(sweeper(startProcess(time, random, noOdds)), runId);
    if (finish.kind !== "finished" || finish.remainingSandboxes.length > 0 || cloud.alive.size > 0)
      violation("a sandbox is left of a finished run");
  }

  const wish = { name: "run", workers: options.slots, metadata: {} };
  const registered = registerRun(sweeper(startProcess(time, random, noOdds)), runId, wish);
  const load = Array.from({ length: options.containers }, container);
  const end = time.sleep(options.loadMs).then(() => {
    isLoaded = false;
  });
  const settledSoon = Promise.race([Promise.all(load), end.then(() => time.sleep(900_000))]);
  await time
    .run(Promise.all([registered, settledSoon, everyMinute(), end]).then(heal), 1e12)
    .catch((error: unknown) => violation(`stopped by ${error}`));
  for (const what of unfenced(truth, odds.skewMs)) violation(what);
  if (tally.served < options.containers) violation("starved");
  return { violations: [...violations], ...tally, created: cloud.created, counts: truth.counts };
}

function faultOnly(error: unknown): null {
  if (error instanceof Fault) return null;
  throw error;
}

function chunkOf(random: () => number) {
  const isLong = random() < 0.05;
  const deadlineMs = Math.round(isLong ? random() * 200_000 : 300 + random() * 5_000);
  return { chunkId: "c", deadlineMs, programs: [] };
}

async function work(events: AsyncIterable<{ kind: string; end?: string }>): Promise<string> {
  try {
    let last = "cut";
    for await (const event of events) last = event.end ?? last;
    return last;
  } catch (error) {
    faultOnly(error);
    return "fault";
  }
}

/** What a pool at rest must not look like. */
function unhealed(rows: StoredRow[], alive: string[]): string[] {
  const slots = rows.filter(({ sk }) => String(sk).startsWith("S#"));
  const found: string[] = [];
  for (const { st } of slots) if (st !== "ready" && st !== "empty") found.push(`a slot stays ${st}`);
  const known = slots.map(({ sb }) => sb);
  if (alive.some((id) => !known.includes(id))) found.push("a sandbox that no slot knows");
  if (slots.some(({ sb }) => sb !== undefined && !alive.includes(String(sb))))
    found.push("a slot without its sandbox");
  return found;
}

/** Fences never fall, in the table's own order; two creations keep the interval, but for the clocks' difference. */
function unfenced({ log }: MemoryTable, skewMs: number): string[] {
  const found: string[] = [];
  const fences = new Map<string, number>();
  let nextCreateAtMs = 0;
  for (const { verb, sk, after } of log) {
    if (verb === "admit creation") {
      if (Number(after.next) < nextCreateAtMs + 1_000 - 2 * skewMs) found.push("created too fast");
      nextCreateAtMs = Math.max(nextCreateAtMs, Number(after.next));
    }
    if (!sk.startsWith("S#")) continue;
    if (Number(after.f) < (fences.get(sk) ?? 0)) found.push("a fence fell");
    fences.set(sk, Number(after.f));
  }
  return found;
}
