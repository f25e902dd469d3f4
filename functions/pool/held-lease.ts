/**
 * A lease while it is held: extended in time, dropped when it is lost, given back in the end.
 *
 * A refused extension means that another has the slot: `lost` is aborted, which stops the work. A store that does not
 * answer means nothing of the kind: extending goes on, and so does the work, because results of a worker that nobody
 * took are good, and one that somebody took refuses us by our fence.
 */
import { Fault } from "../rewards/faults.ts";
import type { Chunk, WorkerEvent, WorkerLease } from "../rewards/ports.ts";
import { type EndContext, endWorker } from "./ending.ts";
import type { Sandboxes, WorkerFactory } from "./ports.ts";
import { type WorkerRow, workerOf } from "./slot-row.ts";
import { emptySlot } from "./slots/empty.ts";
import { extendLease } from "./slots/extend.ts";
import { releaseDraining, releaseReady } from "./slots/release.ts";
import { recordRenewal, ttlAllowedMs } from "./slots/renew.ts";
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

export interface HoldOptions {
  readonly created: boolean;
  /** Told once, when the worker went back: `ready` to be used again, or not. */
  readonly onReleased: (slot: number, how: "ready" | "drained" | "lost") => void;
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

  async function* execute(chunk: Chunk, signal: AbortSignal): AsyncIterable<WorkerEvent> {
    if (over.signal.aborted) throw new Error(`the lease of slot ${leased.slot} was given back`);
    // After a freeze the lease may long be another's: ask before work is started in vain.
    if (!lost.signal.aborted && ctx.clock.nowMs() >= (state.row.leaseUntilMs ?? 0)) await extend();
    lost.signal.throwIfAborted();
    yield* untilLost(
      executor.execute(chunk, leased.fence, AbortSignal.any([signal, lost.signal])),
      lost.signal,
    );
  }

  async function release(condition: "healthy" | "broken"): Promise<void> {
    over.abort();
    try {
      options.onReleased(leased.slot, await giveBack(ctx, state.row, condition));
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
): Promise<"ready" | "drained" | "lost"> {
  const wornOut = row.maxAtMs <= ctx.clock.nowMs() + ctx.settings.minRemainingMs;
  if (condition === "healthy" && !wornOut) {
    return (await releaseReady(ctx, row)) === null ? "lost" : "ready";
  }
  if ((await releaseDraining(ctx, row)) === null) return "lost";
  if (await endWorker(ctx, row)) await emptySlot(ctx, row);
  return "drained"; // a failed kill leaves the slot draining, and the sweep does it again
}

/** Renews a sandbox that nobody renewed in time; a long batch must not depend on the sweep. */
async function renewIfLate(ctx: HoldContext, row: WorkerRow): Promise<void> {
  const nowMs = ctx.clock.nowMs();
  if (row.ttlAtMs > nowMs + ctx.settings.holderRenewsBelowMs) return;
  const ttlMs = ttlAllowedMs(ctx.settings, row, nowMs);
  if (nowMs + ttlMs <= row.ttlAtMs) return;
  const renewed = await ctx.sandboxes.renew(row.sandboxId, ttlMs);
  if (renewed.kind === "done") await recordRenewal(ctx, row.slot, row.sandboxId, nowMs + ttlMs);
}

function leaseLost(row: WorkerRow): Fault {
  return new Fault("worker_lost", `the lease of slot ${row.slot} was taken by another (fence ${row.fence})`);
}
