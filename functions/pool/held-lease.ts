/**
 * A lease while it is held: extended in time, dropped when it is lost, given back in the end.
 *
 * A refused extension means that another has the slot: `lost` is aborted, which stops the work. A store that does not
 * answer means nothing of the kind: extending goes on, and so does the work, because results of a worker that nobody
 * took are good, and one that somebody took refuses us by our fence.
 *
 * A worker's life ends, whoever holds it: no chunk is given more time than is left of it, and what a chunk leaves undone
 * then is as lost as with a worker that was taken, by a cause that no program had a part in.
 */
import { Fault } from "../rewards/faults.ts";
import type { Chunk, WorkerEvent, WorkerLease } from "../rewards/ports.ts";
import { type EndContext, endWorker } from "./ending.ts";
import type { PassedOn, PassOn } from "./passing-on.ts";
import type { Sandboxes, WorkerFactory } from "./ports.ts";
import type { PoolSettings } from "./settings.ts";
import { type WorkerRow, workerOf } from "./slot-row.ts";
import { emptySlot } from "./slots/empty.ts";
import { extendLease } from "./slots/extend.ts";
import { releaseDraining } from "./slots/release.ts";
import { believedTtlAtMs, lifeEndsAtMs, recordRenewal, renewalMs } from "./slots/renew.ts";
import type { SlotContext } from "./slots/write.ts";

/** Time until the next try after an extension that got no answer. */
const retryExtensionMs = 3_000;

export interface HoldContext extends SlotContext, EndContext {
  readonly workers: WorkerFactory;
  readonly sandboxes: EndContext["sandboxes"] & Pick<Sandboxes, "renew">;
}

export interface PoolLease extends WorkerLease {
  readonly slot: number;
  readonly fencingToken: number;
  readonly leasedAtMs: number;
  /** Whether the worker was created for this lease. */
  readonly created: boolean;
  /** Aborted when another has taken the worker. */
  readonly lost: AbortSignal;
}

/** How a worker was given back. `drained`: it is not used again. */
export type Released = PassedOn | "drained";

export interface HoldOptions {
  readonly created: boolean;
  /** Gives a healthy worker to whoever is to have it next. */
  readonly passOn: PassOn;
  /** Told once, when the worker went back: to be used again, or not. */
  readonly onReleased: (slot: number, how: Released) => void;
  /** Told what went wrong where nobody can be told by an exception. */
  readonly onFault: (fault: unknown) => void;
}

/** Starts to hold a worker that was just leased. */
export function holdLease(ctx: HoldContext, leased: WorkerRow, options: HoldOptions): PoolLease {
  const state = { row: leased };
  const over = new AbortController();
  const lost = new AbortController();
  const executor = ctx.workers.attach(leased);
  let released: Promise<void> | null = null;

  async function extend(): Promise<void> {
    const row = await extendLease(ctx, leased);
    const worker = row === null ? null : workerOf(row);
    if (worker !== null) state.row = worker;
    else if (!over.signal.aborted) lost.abort(leaseLost(leased));
  }

  async function keepExtended(): Promise<void> {
    let waitMs = ctx.settings.extendEveryMs;
    while (!over.signal.aborted && !lost.signal.aborted) {
      await ctx.clock.sleep(waitMs, over.signal);
      if (over.signal.aborted || lost.signal.aborted) return;
      waitMs = ctx.settings.extendEveryMs;
      try {
        await extend();
        await renewIfLate(ctx, state.row);
      } catch (error) {
        waitMs = retryExtensionMs;
        options.onFault(error);
      }
    }
  }

  const livesUntilMs = endOfUseMs(ctx.settings, leased);

  async function* execute(chunk: Chunk, signal: AbortSignal): AsyncIterable<WorkerEvent> {
    if (over.signal.aborted) throw new Error(`the lease of slot ${leased.slot} was given back`);
    // After a freeze the lease may long be another's: ask before work is started in vain.
    if (!lost.signal.aborted && ctx.clock.nowMs() >= (state.row.leaseUntilMs ?? 0)) await extend();
    lost.signal.throwIfAborted();
    const leftMs = livesUntilMs - ctx.clock.nowMs();
    if (leftMs <= 0) throw lifeIsOver(leased);
    const inTime = chunk.deadlineMs <= leftMs ? chunk : { ...chunk, deadlineMs: leftMs };
    const either = AbortSignal.any([signal, lost.signal]);
    for await (const event of untilLost(executor.execute(inTime, leased.fence, either), lost.signal)) {
      if (inTime !== chunk && event.kind === "summary" && event.end === "deadline") throw lifeIsOver(leased);
      yield event;
    }
  }

  async function release(condition: "healthy" | "broken"): Promise<void> {
    over.abort();
    try {
      options.onReleased(leased.slot, await giveBack(ctx, state.row, condition, options.passOn));
    } catch (error) {
      options.onFault(error); // the lease ends by itself
      options.onReleased(leased.slot, "lost");
    }
  }

  keepExtended().catch(options.onFault);
  return {
    workerId: leased.sandboxId,
    slot: leased.slot,
    fencingToken: leased.fence,
    leasedAtMs: ctx.clock.nowMs(),
    created: options.created,
    livesUntilMs,
    lost: lost.signal,
    execute,
    release(condition) {
      released ??= release(condition);
      return released;
    },
  };
}

/** Passes events on; a stream that ends or breaks because the lease was lost ends in that fault. */
async function* untilLost(events: AsyncIterable<WorkerEvent>, lost: AbortSignal): AsyncIterable<WorkerEvent> {
  let whole = false;
  try {
    for await (const event of events) {
      whole = event.kind === "summary";
      yield event;
    }
  } catch (error) {
    lost.throwIfAborted();
    throw error;
  }
  if (!whole) lost.throwIfAborted();
}

/** Gives the slot back; a worker that is broken or near its end is killed, and its slot emptied at once. */
async function giveBack(
  ctx: HoldContext,
  row: WorkerRow,
  condition: "healthy" | "broken",
  passOn: PassOn,
): Promise<Released> {
  const wornOut = row.maxAtMs <= ctx.clock.nowMs() + ctx.settings.minRemainingMs;
  if (condition === "healthy" && !wornOut) return passOn(row);
  if ((await releaseDraining(ctx, row)) === null) return "lost";
  if (await endWorker(ctx, row)) await emptySlot(ctx, row);
  return "drained"; // a failed kill leaves the slot draining, and the sweep does it again
}

/** Renews a sandbox that nobody renewed in time; a long batch must not depend on the sweep. */
async function renewIfLate(ctx: HoldContext, row: WorkerRow): Promise<void> {
  const nowMs = ctx.clock.nowMs();
  if (believedTtlAtMs(ctx.settings, row, nowMs) > nowMs + ctx.settings.holderRenewsBelowMs) return;
  const ttlMs = renewalMs(ctx.settings, row, nowMs);
  if (ttlMs === null) return;
  const renewed = await ctx.sandboxes.renew(row.sandboxId, ttlMs);
  if (renewed.kind === "done") await recordRenewal(ctx, row.slot, row.sandboxId, nowMs + ttlMs);
}

/**
 * Until when a worker is worked on at the most: a sixth of the plan's life after its replacement is due, so that workers
 * made together don't end together, and never so late that the plan might end it first.
 */
function endOfUseMs(settings: PoolSettings, { bornAtMs, maxAtMs }: WorkerRow): number {
  const spreadMs = maxAtMs + Math.round(settings.lifeMs / 6);
  if (bornAtMs === undefined) return spreadMs;
  return Math.min(spreadMs, lifeEndsAtMs(settings, bornAtMs) - settings.graceMs);
}

function leaseLost(row: WorkerRow): Fault {
  const detail = `the lease of slot ${row.slot} was taken by another (fence ${row.fence})`;
  return new Fault("worker_lost", detail, { isKnownCause: true });
}

function lifeIsOver(row: WorkerRow): Fault {
  const detail = `the life of the worker in slot ${row.slot} is over, as the provider's plan has it`;
  return new Fault("worker_lost", detail, { isKnownCause: true });
}
