/** Containers that lease workers over one table and one cloud, in virtual time. */
import { afterEach, expect } from "vitest";
import type { PoolLease } from "../../functions/pool/held-lease.ts";
import { createLeaseSource, type LeaseDemand, type PoolEvent } from "../../functions/pool/lease-source.ts";
import { readPool } from "../../functions/pool/pool-view.ts";
import type { Table } from "../../functions/pool/ports.ts";
import type { PoolSettings } from "../../functions/pool/settings.ts";
import type { Fault } from "../../functions/rewards/faults.ts";
import type { AcquireOptions } from "../../functions/rewards/ports.ts";
import { createFakeCloud, type FakeCloud } from "./fake-cloud.ts";
import { createMemoryTable, type MemoryTable } from "./memory-table.ts";
import { seeded, startMs, testSettings } from "./test-pool.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

export interface World {
  readonly clock: VirtualClock;
  readonly table: MemoryTable;
  readonly cloud: FakeCloud;
  readonly events: PoolEvent[];
  /** A container of its own. */
  container(options?: {
    settings?: Partial<PoolSettings>;
    table?: Table;
    demand?: Partial<LeaseDemand>;
  }): Container;
  states(): Promise<string[]>;
}

export interface Container {
  acquire(options?: {
    waitMs?: number;
    signal?: AbortSignal;
    demand?: Partial<LeaseDemand>;
    onTrouble?: AcquireOptions["onTrouble"];
  }): Promise<PoolLease | null>;
  /** Whether the batch should give one of its workers to another. */
  isWanted(demand?: Partial<LeaseDemand>): Promise<boolean>;
  settled(): Promise<void>;
  creationFault(): Fault | null;
}

const worlds: World[] = [];

// Whatever a test did: each slot has one sandbox at most, and each is known to its slot or is being killed.
afterEach(() => {
  for (const { cloud, table } of worlds.splice(0)) {
    const rows = table.rows().filter((row) => String(row.sk).startsWith("S#"));
    expect(cloud.mostAlive()).toBeLessThanOrEqual(Math.max(1, rows.length));
    for (const sandbox of cloud.alive.values()) {
      const row = rows.find((slot) => Number(String(slot.sk).slice(2)) === sandbox.slot);
      expect(row?.sb === sandbox.sandboxId || ["creating", "draining"].includes(String(row?.st))).toBe(true);
    }
  }
});

/** `createMs` is what a creation takes, `latencyMs` the most that one way to the table takes. */
export function createWorld({ createMs = 0, latencyMs = 0, seed = 1 } = {}): World {
  const clock = createVirtualClock(startMs);
  const random = seeded(seed);
  const table = createMemoryTable(() =>
    latencyMs === 0 ? Promise.resolve() : clock.sleep(Math.round(random() * latencyMs)),
  );
  const cloud = createFakeCloud(clock, createMs);
  const events: PoolEvent[] = [];
  let ids = 0;
  const newId = () => (ids++).toString(36).padStart(8, "0");
  const world: World = {
    clock,
    table,
    cloud,
    events,
    container(options = {}) {
      const source = createLeaseSource(
        {
          table: options.table ?? table,
          clock,
          newId,
          random,
          settings: testSettings(options.settings),
          workers: cloud.workers,
          sandboxes: cloud.sandboxes,
          poolId: async () => "pool-1",
        },
        (event) => events.push(event),
      );
      return {
        settled: source.settled,
        creationFault: source.creationFault,
        isWanted: (demand = {}) =>
          source
            .forBatch({ runId: "run", batchId: "batch", ...options.demand, ...demand })
            .isWantedElsewhere(),
        acquire({ waitMs = 60_000, signal = new AbortController().signal, demand = {}, onTrouble } = {}) {
          const batch = source.forBatch({ runId: "run", batchId: "batch", ...options.demand, ...demand });
          const deadlineAtMs = clock.nowMs() + waitMs;
          return batch.acquire({ deadlineAtMs, signal, ...(onTrouble && { onTrouble }) });
        },
      };
    },
    async states() {
      const settings = testSettings();
      const context = { table: createReader(table), clock, newId, settings };
      const view = await readPool(context);
      return view.slots.filter((row) => row.fence > 0).map((row) => row.state);
    },
  };
  worlds.push(world);
  return world;
}

/** Reads without waiting and without being counted. */
function createReader(table: MemoryTable): Table {
  return { ...table, query: async () => table.rows() };
}
