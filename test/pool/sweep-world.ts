/** A pool with sweeps, runs and handlers in virtual time, over sandboxes that die at the end of their time. */
import { createLeaseSource, type LeaseDemand } from "../../functions/pool/lease-source.ts";
import type { ListedSandbox, Sandboxes, Table, WorkerFactory } from "../../functions/pool/ports.ts";
import { registerRun } from "../../functions/pool/runs/register.ts";
import { rememberRuns } from "../../functions/pool/runs/target.ts";
import type { PoolSettings } from "../../functions/pool/settings.ts";
import { readSlotRow, type SlotRow, shortTag } from "../../functions/pool/slot-row.ts";
import { claimSlot } from "../../functions/pool/slots/claim.ts";
import { publishWorker } from "../../functions/pool/slots/publish.ts";
import type { Holder } from "../../functions/pool/slots/write.ts";
import type { SweepReport } from "../../functions/pool/sweep/report.ts";
import { type SweepContext, sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { createFakeCloud, type FakeCloud } from "./fake-cloud.ts";
import { createMemoryTable, type MemoryTable } from "./memory-table.ts";
import { access, present, seeded, startMs, testSettings } from "./test-pool.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

export interface SweepWorld {
  readonly clock: VirtualClock;
  readonly table: MemoryTable;
  readonly cloud: FakeCloud;
  /** When each sandbox dies unless it is renewed. */
  readonly diesAtMs: Map<string, number>;
  /** Sandboxes that died because nobody renewed them. */
  readonly starved: string[];
  readonly settings: PoolSettings;
  /** What a handler or a sweep works with; each has its own nonces. */
  context(overrides?: Partial<SweepContext>): SweepContext;
  sweep(overrides?: Partial<SweepContext>, budgetMs?: number): Promise<SweepReport>;
  /** Sweeps now and every minute until so much time has passed; `each` is called before each pass. */
  sweepFor(minutes: number, each?: () => Promise<unknown>): Promise<SweepReport[]>;
  register(runId: string, workers: number): Promise<void>;
  /** Leases as a handler does. */
  lease(demand?: Partial<LeaseDemand>, overrides?: Partial<SweepContext>): ReturnType<typeof leaseFrom>;
  slots(): SlotRow[];
  states(): string[];
  /** A sandbox that exists, with or without a slot that knows it. */
  addSandbox(meta: Partial<ListedSandbox>): string;
}

export interface SweepWorldOptions {
  readonly settings?: Partial<PoolSettings>;
  readonly latencyMs?: number;
  readonly createMs?: number;
  readonly seed?: number;
  readonly poolId?: string;
  /** Another world's time and provider. */
  readonly beside?: SweepWorld;
}

export function createSweepWorld(options: SweepWorldOptions = {}): SweepWorld {
  const { latencyMs = 0, createMs = 0, seed = 1, poolId = "pool-1", beside } = options;
  const clock = beside?.clock ?? createVirtualClock(startMs);
  const random = seeded(seed);
  const settings = testSettings(options.settings);
  const table = createMemoryTable(() =>
    latencyMs === 0 ? Promise.resolve() : clock.sleep(Math.round(random() * latencyMs)),
  );
  const cloud = beside?.cloud ?? createFakeCloud(clock, createMs);
  const diesAtMs = beside?.diesAtMs ?? new Map<string, number>();
  const starved = beside?.starved ?? [];
  const mortal = withTimeToLive(cloud, clock, diesAtMs, starved);
  let ids = 0;

  const world: SweepWorld = {
    clock,
    table,
    cloud,
    diesAtMs,
    starved,
    settings,
    context: (overrides = {}) => ({
      table,
      clock,
      newId: () => `${poolId}${(ids++).toString(36).padStart(8, "0")}`,
      random,
      settings,
      poolId: async () => poolId,
      ...mortal,
      ...overrides,
    }),
    sweep: (overrides = {}, budgetMs = 50_000) =>
      clock.run(sweepPool(world.context(overrides), { deadlineAtMs: clock.nowMs() + budgetMs })),
    async sweepFor(minutes, each = async () => {}) {
      const reports: SweepReport[] = [];
      for (let minute = 0; minute < minutes; minute += 1) {
        const nextMs = clock.nowMs() + 60_000;
        await clock.run(each());
        reports.push(await world.sweep());
        await clock.pass(Math.max(0, nextMs - clock.nowMs()));
      }
      return reports;
    },
    async register(runId, workers) {
      await clock.run(registerRun(world.context(), runId, { name: runId, workers, metadata: {} }));
    },
    lease: (demand = {}, overrides = {}) => leaseFrom(world, demand, overrides),
    slots: () => table.rows().flatMap((row) => readSlotRow(row) ?? []),
    states: () =>
      world
        .slots()
        .map(({ state }) => state)
        .toSorted(),
    addSandbox(meta) {
      const sandboxId = meta.sandboxId ?? `x${String(cloud.alive.size).padStart(20, "0")}`;
      const sandbox = { poolId, slot: -1, generation: -1, startedAtMs: clock.nowMs(), ...meta, sandboxId };
      cloud.alive.set(sandboxId, sandbox);
      diesAtMs.set(sandboxId, clock.nowMs() + settings.ttlMs);
      return sandboxId;
    },
  };
  return world;
}

async function leaseFrom(world: SweepWorld, demand: Partial<LeaseDemand>, overrides: Partial<SweepContext>) {
  const ctx = world.context(overrides);
  const runs = rememberRuns(ctx, ctx.settings.slots);
  const runId = demand.runId ?? "run";
  const batch = createLeaseSource(ctx).forBatch({
    batchId: "b",
    targetWorkers: runs.targetWorkers,
    ...demand,
    runId,
  });
  const signal = new AbortController().signal;
  return present(await batch.acquire({ deadlineAtMs: world.clock.nowMs() + 60_000, signal }));
}

/** Lets sandboxes die when their time is over, whoever looks. */
function withTimeToLive(
  cloud: FakeCloud,
  clock: VirtualClock,
  diesAtMs: Map<string, number>,
  starved: string[],
): { sandboxes: Sandboxes; workers: WorkerFactory } {
  const reap = () => {
    for (const [sandboxId, atMs] of diesAtMs) {
      if (atMs > clock.nowMs()) continue;
      if (cloud.alive.delete(sandboxId)) starved.push(sandboxId);
      diesAtMs.delete(sandboxId);
    }
  };
  return {
    sandboxes: {
      create: cloud.sandboxes.create,
      async kill(sandboxId) {
        reap();
        const killed = await cloud.sandboxes.kill(sandboxId);
        if (killed.kind === "done") diesAtMs.delete(sandboxId);
        return killed;
      },
      async renew(sandboxId, ttlMs) {
        reap();
        const renewed = await cloud.sandboxes.renew(sandboxId, ttlMs);
        if (renewed.kind === "done") diesAtMs.set(sandboxId, clock.nowMs() + ttlMs);
        return renewed;
      },
      async list(poolId) {
        reap();
        return cloud.sandboxes.list(poolId);
      },
    },
    workers: {
      ...cloud.workers,
      async create(order, signal) {
        const made = await cloud.workers.create(order, signal);
        if (made.kind === "created") diesAtMs.set(made.sandboxId, clock.nowMs() + order.ttlMs);
        return made;
      },
    },
  };
}

/** Puts a worker into the slot, held by somebody or free. */
export async function addWorker(world: SweepWorld, slot: number, holder: Holder | null = null) {
  const ctx = world.context();
  const claim = present(await claimSlot(ctx, slot, shortTag("run")));
  const sandboxId = world.addSandbox({ slot, generation: claim.generation, sandboxId: `w${slot}` });
  const askedAtMs = world.clock.nowMs();
  const made = { sandboxId, access, askedAtMs, maxAtMs: askedAtMs + 3_000_000 };
  return present(await publishWorker(ctx, claim, made, holder));
}

/** Makes every call of a context die at the given one, before or after it took effect; later ones never answer. */
export function dyingAt(
  ctx: SweepContext,
  callNumber: number,
  when: "before" | "after",
): SweepContext & { calls(): number } {
  let calls = 0;
  const never = new Promise<never>(() => {});
  async function call<T>(effect: () => Promise<T>): Promise<T> {
    calls += 1;
    if (calls > callNumber || (calls === callNumber && when === "before")) return never;
    const answer = await effect();
    // The effect of an earlier call may come back after the death.
    return calls >= callNumber ? never : answer;
  }
  const table: Table = {
    get: (key) => call(() => ctx.table.get(key)),
    query: (pk, prefix) => call(() => ctx.table.query(pk, prefix)),
    update: (key, expression, values) => call(() => ctx.table.update(key, expression, values)),
  };
  const sandboxes: Sandboxes = {
    create: ctx.sandboxes.create,
    kill: (id) => call(() => ctx.sandboxes.kill(id)),
    renew: (id, ttlMs) => call(() => ctx.sandboxes.renew(id, ttlMs)),
    list: (poolId) => call(() => ctx.sandboxes.list(poolId)),
  };
  const workers: WorkerFactory = {
    create: (order, signal) => call(() => ctx.workers.create(order, signal)),
    attach: (worker) => ctx.workers.attach(worker),
  };
  return { ...ctx, table, sandboxes, workers, calls: () => calls };
}
