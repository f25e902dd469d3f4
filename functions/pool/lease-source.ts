/**
 * Where a batch's workers come from, and where they go: `search.ts` finds them, `passing-on.ts` knows who is next.
 */
import type { Fault } from "../rewards/faults.ts";
import type { AcquireOptions, WorkerSource } from "../rewards/ports.ts";
import { batchTagOf } from "./batches/batch-tag.ts";
import { holdLease, type PoolLease, type Released } from "./held-lease.ts";
import { createLeaseContainer, type LeaseContainer, type PoolContext } from "./lease-container.ts";
import { searchWorker } from "./search.ts";
import { shortTag } from "./slot-row.ts";
import type { Found } from "./taking.ts";
import { createWanted } from "./wanted.ts";

export type { PoolContext };

export type PoolEvent =
  | { readonly kind: "leased"; readonly slot: number; readonly how: Found["how"] }
  | { readonly kind: "released"; readonly slot: number; readonly how: Released }
  | { readonly kind: "created"; readonly slot: number }
  | { readonly kind: "fault"; readonly fault: unknown };

/** For whom workers are leased. */
export interface LeaseDemand {
  readonly runId: string;
  readonly batchId: string;
  /** Which attempt at it this is, if the batch has a record. */
  readonly attemptNumber?: number;
  /** Workers that the run may hold at once; not looked at on the way without a read. */
  readonly runWorkers?: number;
  /** Workers that the pool should have at most, asked before a creation; all slots without it. */
  readonly targetWorkers?: number | (() => Promise<number>);
  /** Told what a sandbox that was created while the batch waited for it cost until it was ready, or killed. */
  readonly onStart?: (ms: number) => void;
}

export interface PoolWorkerSource extends WorkerSource {
  acquire(options: AcquireOptions): Promise<PoolLease | null>;
  isWantedElsewhere(): Promise<boolean>;
}

export interface LeaseSource {
  /** The source of one batch's workers. */
  forBatch(demand: LeaseDemand): PoolWorkerSource;
  /** Resolves once no creation is under way that nobody waits for. */
  settled(): Promise<void>;
  /** Why this container's last creation failed; null when it did not. */
  creationFault(): Fault | null;
}

/** One per container: it remembers which slots were used last, and who waits. */
export function createLeaseSource(
  ctx: PoolContext,
  report: (event: PoolEvent) => void = () => {},
): LeaseSource {
  const container = createLeaseContainer(ctx, report);
  const isWanted = createWanted(container);
  return {
    forBatch: (demand) => ({
      acquire: (options) => acquire(container, demand, options),
      isWantedElsewhere: () => isWanted({ runTag: shortTag(demand.runId), batchTag: batchTagOf(demand) }),
    }),
    settled: container.creations.settled,
    creationFault: container.creations.lastFault,
  };
}

async function acquire(
  container: LeaseContainer,
  demand: LeaseDemand,
  options: AcquireOptions,
): Promise<PoolLease | null> {
  const found = await searchWorker(container, demand, options);
  if (found === null) return null;
  const lease = handOut(container, batchTagOf(demand), found);
  if (!options.signal.aborted) return lease;
  await lease.release("healthy"); // nobody is there to take it
  return null;
}

function handOut(container: LeaseContainer, batchTag: string, { row, how }: Found): PoolLease {
  const { ctx, line, passOn, report } = container;
  const lease = holdLease(ctx, row, {
    created: how === "created",
    passOn,
    onReleased: (slot, released) => {
      noteReleased(container, slot, released === "ready");
      report({ kind: "released", slot, how: released });
    },
    onFault: (fault) => report({ kind: "fault", fault }),
  });
  report({ kind: "leased", slot: row.slot, how });
  const noteEnd = line.noteLease(batchTag, lease.leasedAtMs);
  return {
    ...lease,
    release(condition) {
      noteEnd();
      return lease.release(condition);
    },
  };
}

function noteReleased({ ctx, recentSlots }: LeaseContainer, slot: number, isForAnybody: boolean): void {
  const before = recentSlots.findIndex((recent) => recent.slot === slot);
  if (before >= 0) recentSlots.splice(before, 1);
  if (isForAnybody) recentSlots.push({ slot, sinceMs: ctx.clock.nowMs() });
}
