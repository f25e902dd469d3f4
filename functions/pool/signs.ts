/** The signs of waiting that one container gives, and those of others that it believes. */
import type { PoolEvent } from "./lease-source.ts";
import { isHolding, type PoolView, waitingBatches } from "./pool-view.ts";
import type { Holder, SlotContext } from "./slots/write.ts";
import { isToSign, signWaiting, type WaitingBatch } from "./waiting.ts";

/** No run's sign is given twice by one container within this, however many of its batches wait. */
const leastEveryMs = 1_000;
/** One's own signs are known for longer than anybody believes them. */
const rememberedMs = 60_000;

export interface Signs {
  /** Says that the batch waits, unless its run's row says as much. Never throws. */
  give(holder: Holder, wait: Pick<WaitingBatch, "sinceMs" | "runIsFull">, view: PoolView): Promise<void>;
  /** Batches of other containers that wait with no worker. */
  elsewhere(view: PoolView, nowMs: number): WaitingBatch[];
}

export function createSigns(ctx: SlotContext, report: (event: PoolEvent) => void): Signs {
  /** When it was last said of a run and of a batch. */
  const runs = new Map<string, number>();
  const batches = new Map<string, number>();

  return {
    async give(holder, wait, view) {
      const { runTag, batchTag } = holder;
      const nowMs = ctx.clock.nowMs();
      if (nowMs - (runs.get(runTag) ?? 0) < leastEveryMs || isHolding(view, batchTag)) return;
      const present = waitingBatches(ctx, view, nowMs).find((waiting) => waiting.runTag === runTag) ?? null;
      if (!isToSign(present, { batchTag, ...wait }, nowMs)) return;
      for (const known of [runs, batches]) forgetBefore(known, nowMs - rememberedMs);
      runs.set(runTag, nowMs);
      batches.set(batchTag, nowMs);
      await signWaiting(ctx, holder, wait).catch((fault: unknown) => report({ kind: "fault", fault }));
    },
    elsewhere: (view, nowMs) =>
      waitingBatches(ctx, view, nowMs).filter(({ batchTag }) => batchTag === null || !batches.has(batchTag)),
  };
}

function forgetBefore(times: Map<string, number>, beforeMs: number): void {
  for (const [what, atMs] of times) if (atMs < beforeMs) times.delete(what);
}
