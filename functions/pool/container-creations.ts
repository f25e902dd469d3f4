/**
 * The creations of one container: how far apart they are while the provider refuses, and what becomes of those that
 * nobody waits for any more.
 */
import type { Fault } from "../rewards/faults.ts";
import { type CreationContext, type CreationResult, createWorker } from "./creation.ts";
import type { PoolEvent } from "./lease-source.ts";
import { backoffMs } from "./polling.ts";
import { countServing, type PoolView } from "./pool-view.ts";
import { noteStart } from "./runs/note-start.ts";
import { releaseReady } from "./slots/release.ts";
import type { Holder } from "./slots/write.ts";
import type { Trouble } from "./trouble.ts";

/** Who waits for a worker that is created. */
export interface Waiter {
  /** For which run, and who is told what the sandbox has cost until it was ready or killed. */
  readonly demand: { readonly runId: string; readonly onStart?: (ms: number) => void };
  readonly holder: Holder;
  readonly deadlineAtMs: number;
  readonly signal: AbortSignal;
  readonly trouble: Trouble;
}

export interface ContainerCreations {
  /** Why the last one failed; null when it did not. */
  lastFault(): Fault | null;
  /** Why none may be tried yet. */
  refusal(): Fault | null;
  /** Slots that have a worker of use, or are about to. */
  countServing(view: PoolView): number;
  /**
   * Creates a worker in the slot, and leaves that to itself when the waiter's time is over first; null then. Throws the
   * table's faults.
   */
  create(slot: number, waiter: Waiter): Promise<CreationResult | null>;
  /** Resolves once no creation is under way that nobody waits for. */
  settled(): Promise<void>;
}

interface State {
  readonly ctx: CreationContext;
  readonly report: (event: PoolEvent) => void;
  readonly leftAlone: Set<Promise<unknown>>;
  /** Failures in a row, and why the last one failed. */
  failures: number;
  lastFault: Fault | null;
  notBeforeMs: number;
  /** Creations of which nobody knows whether they left a sandbox: generation by slot. */
  readonly unsure: Map<number, number>;
}

export function createContainerCreations(
  ctx: CreationContext,
  report: (event: PoolEvent) => void,
): ContainerCreations {
  const state: State = {
    ctx,
    report,
    leftAlone: new Set(),
    failures: 0,
    lastFault: null,
    notBeforeMs: 0,
    unsure: new Map(),
  };
  return {
    lastFault: () => state.lastFault,
    refusal: () => (state.notBeforeMs > ctx.clock.nowMs() ? state.lastFault : null),
    countServing: (view) => countServing(ctx, view, ctx.clock.nowMs(), state.unsure),
    create: (slot, waiter) => createWhileWaitedFor(state, slot, waiter),
    settled: async () => {
      while (state.leftAlone.size > 0) await Promise.allSettled(state.leftAlone);
    },
  };
}

async function createWhileWaitedFor(
  state: State,
  slot: number,
  { demand, holder, deadlineAtMs, signal, trouble }: Waiter,
): Promise<CreationResult | null> {
  const { ctx } = state;
  let waitedFor = true;
  const creation = createWorker(ctx, slot, holder.runTag, () => (waitedFor ? holder : null)).then(
    async (result) => {
      if (waitedFor) demand.onStart?.(result.start?.ms ?? 0);
      await noteStart(ctx, demand.runId, result.start).catch((fault: unknown) =>
        state.report({ kind: "fault", fault }),
      );
      return noteResult(state, result);
    },
  );
  const done = new AbortController();
  const timeIsUp = ctx.clock
    .sleep(deadlineAtMs - ctx.clock.nowMs(), AbortSignal.any([signal, done.signal]))
    .then(() => null);
  try {
    const first = await Promise.race([trouble.watchCreation(creation), timeIsUp]);
    if (first !== null) return first;
    waitedFor = false;
    leaveToItself(state, creation);
    return null;
  } finally {
    done.abort();
  }
}

function leaveToItself({ ctx, report, leftAlone }: State, creation: Promise<CreationResult>): void {
  const freed = creation
    .then(async (result) => {
      // It may have been published as leased in the very moment in which the search gave up.
      if (result.kind === "published" && result.row.state === "leased") await releaseReady(ctx, result.row);
    })
    .catch((fault: unknown) => report({ kind: "fault", fault }))
    .finally(() => leftAlone.delete(freed));
  leftAlone.add(freed);
}

/** Backs off, for the whole container, while the provider refuses; at least for as long as it asks for. */
function noteResult(state: State, result: CreationResult): CreationResult {
  const { ctx, report } = state;
  if (result.kind === "published") {
    state.failures = 0;
    state.lastFault = null;
    report({ kind: "created", slot: result.row.slot });
  }
  if (result.kind === "failed") {
    state.failures += 1;
    state.lastFault = result.fault;
    if (result.claim !== null) state.unsure.set(result.claim.slot, result.claim.generation);
    const pauseMs = Math.max(backoffMs(state.failures, ctx.random()), result.fault.retryAfterMs ?? 0);
    state.notBeforeMs = ctx.clock.nowMs() + pauseMs;
    report({ kind: "fault", fault: result.fault });
  }
  return result;
}
