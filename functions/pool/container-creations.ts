/**
 * The creations of one container: how far apart they are while the provider refuses, and what becomes of those that
 * nobody waits for any more.
 */
import type { Fault } from "../rewards/faults.ts";
import { type CreationContext, type CreationResult, createWorker } from "./creation.ts";
import type { PoolEvent } from "./lease-source.ts";
import type { PassOn } from "./passing-on.ts";
import { backoffMs } from "./polling.ts";
import { countServing, type PoolView } from "./pool-view.ts";
import { noteStart } from "./runs/note-start.ts";
import type { Holder } from "./slots/write.ts";
import type { Trouble } from "./trouble.ts";

/** Who waits for a worker that is created. */
export interface Waiter {
  /** For which run, and who is told what the sandbox has cost until it was ready or killed. */
  readonly demand: { readonly runId: string; readonly onStart?: (ms: number) => void };
  readonly holder: Holder;
  readonly trouble: Trouble;
}

export interface CreationUnderWay {
  /** Resolves once it has come to an end, whatever that is. */
  readonly ended: Promise<void>;
  hasEnded(): boolean;
  /** What came of it once it has ended, for the one who waited. Throws the table's faults. */
  take(): CreationResult;
  /** Nobody waits for it any more: it goes on, and its worker goes to others. */
  leave(): void;
}

export interface ContainerCreations {
  /** Why the last one failed; null when it did not. */
  lastFault(): Fault | null;
  /** Why none may be tried yet. */
  refusal(): Fault | null;
  /** Whether one of this container was begun so lately that the pace allows no other. */
  isPaced(): boolean;
  /** Slots that have a worker of use, or are about to. */
  countServing(view: PoolView): number;
  /** Begins to create a worker in the slot. */
  begin(slot: number, waiter: Waiter): CreationUnderWay;
  /** Resolves once no creation is under way that nobody waits for, and what each one cost is noted. */
  settled(): Promise<void>;
}

interface State {
  readonly ctx: CreationContext;
  readonly report: (event: PoolEvent) => void;
  readonly passOn: PassOn;
  readonly leftAlone: Set<Promise<unknown>>;
  /** Failures in a row, and why the last one failed. */
  failures: number;
  lastFault: Fault | null;
  notBeforeMs: number;
  begunAtMs: number;
  /** Creations of which nobody knows whether they left a sandbox: generation by slot. */
  readonly unsure: Map<number, number>;
}

export function createContainerCreations(
  ctx: CreationContext,
  report: (event: PoolEvent) => void,
  passOn: PassOn,
): ContainerCreations {
  const state: State = {
    ctx,
    report,
    passOn,
    leftAlone: new Set(),
    failures: 0,
    lastFault: null,
    notBeforeMs: 0,
    begunAtMs: Number.NEGATIVE_INFINITY,
    unsure: new Map(),
  };
  return {
    lastFault: () => state.lastFault,
    refusal: () => (state.notBeforeMs > ctx.clock.nowMs() ? state.lastFault : null),
    countServing: (view) => countServing(ctx, view, ctx.clock.nowMs(), state.unsure),
    isPaced: () => ctx.clock.nowMs() < state.begunAtMs + ctx.settings.createIntervalMs,
    begin: (slot, waiter) => begin(state, slot, waiter),
    settled: async () => {
      while (state.leftAlone.size > 0) await Promise.allSettled(state.leftAlone);
    },
  };
}

function begin(state: State, slot: number, { demand, holder, trouble }: Waiter): CreationUnderWay {
  const { ctx } = state;
  let isWaitedFor = true;
  let outcome: (() => CreationResult) | null = null;
  state.begunAtMs = ctx.clock.nowMs();
  const creation = createWorker(ctx, slot, holder.runTag, () => (isWaitedFor ? holder : null)).then(
    (result) => {
      if (isWaitedFor) demand.onStart?.(result.start?.ms ?? 0);
      // Its batch has the worker meanwhile, also while the table is silent.
      doBeside(state, noteStart(ctx, demand.runId, result.start));
      return noteResult(state, result);
    },
  );
  const ended = trouble.watchCreation(creation).then(
    (result) => {
      outcome = () => result;
    },
    (error: unknown) => {
      outcome = () => {
        throw error;
      };
    },
  );
  return {
    ended,
    hasEnded: () => outcome !== null,
    take() {
      if (outcome === null) throw new Error("the creation is under way");
      isWaitedFor = false;
      return outcome();
    },
    leave() {
      if (isWaitedFor) leaveToItself(state, creation);
      isWaitedFor = false;
    },
  };
}

function leaveToItself(state: State, creation: Promise<CreationResult>): void {
  const freed = creation.then(async (result) => {
    // It may have been published as leased in the very moment in which the search ended.
    if (result.kind === "published" && result.row.state === "leased") await state.passOn(result.row);
  });
  doBeside(state, freed);
}

/** What nobody waits for but who wants all to be settled. */
function doBeside({ report, leftAlone }: State, work: Promise<unknown>): void {
  const done = work
    .catch((fault: unknown) => report({ kind: "fault", fault }))
    .finally(() => leftAlone.delete(done));
  leftAlone.add(done);
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
