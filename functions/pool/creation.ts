/**
 * Creating a worker in an empty slot: admit, claim, create, publish.
 *
 * What becomes of the slot depends on what is known of the sandbox. Surely none: the slot is freed. Surely one that is
 * of no use: it is killed, then the slot is freed. Unknown: the slot stays `creating`; a sandbox that lands late must
 * not find its place given to another, and the sweep will list, kill and empty once the claim's time is over.
 */
import type { Fault } from "../rewards/faults.ts";
import { isKilled } from "./ending.ts";
import type { Sandboxes, WorkerCreation, WorkerFactory } from "./ports.ts";
import { type SlotRow, type WorkerRow, workerOf } from "./slot-row.ts";
import { claimSlot, freeTakenClaim, unclaimSlot } from "./slots/claim.ts";
import { admitCreation } from "./slots/pacing.ts";
import { publishWorker } from "./slots/publish.ts";
import type { Holder, SlotContext } from "./slots/write.ts";

export interface CreationContext extends SlotContext {
  readonly workers: WorkerFactory;
  readonly sandboxes: Pick<Sandboxes, "kill">;
  /** The pool's id, read once. */
  readonly poolId: () => Promise<string>;
  readonly random: () => number;
}

export type CreationResult = CreationOutcome & { readonly start?: WorkerStart };

type CreationOutcome =
  | { readonly kind: "published"; readonly row: WorkerRow }
  /** The pace does not allow one yet, or the slot went to another. */
  | { readonly kind: "not_now" }
  /** `claim`: the slot that it occupies still, for nobody knows whether there is a sandbox. */
  | { readonly kind: "failed"; readonly fault: Fault; readonly claim: SlotRow | null };

/** A sandbox that there certainly was, and that is paid for. */
export interface WorkerStart {
  /** No other one has it. */
  readonly id: string;
  /** Until its worker was ready, or it was killed. */
  readonly ms: number;
}

/**
 * Creates one worker; `holderNow` is asked when it is ready, and null publishes it free for anybody.
 *
 * Throws the table's faults. An exception of the factory leaves the slot `creating`, like an ambiguous outcome.
 */
export async function createWorker(
  ctx: CreationContext,
  slot: number,
  createdForRun: string,
  holderNow: () => Holder | null,
): Promise<CreationResult> {
  const poolId = await ctx.poolId();
  if (!(await admitCreation(ctx))) return { kind: "not_now" };
  const claim = await claimSlot(ctx, slot, createdForRun);
  if (claim === null) return { kind: "not_now" };
  const askedAtMs = ctx.clock.nowMs();
  if (askedAtMs > lastStartMs(ctx, claim)) {
    // We were frozen since: a sandbox that lands now might find its place given to another.
    await unclaimSlot(ctx, claim);
    return { kind: "not_now" };
  }
  const made = await createInTime(ctx, claim, poolId);
  const outcome = await settle(ctx, claim, made, { askedAtMs, holderNow });
  if (made.kind !== "created" && made.kind !== "unproved") return outcome;
  const start = { id: `${claim.slot}.${claim.generation}`, ms: ctx.clock.nowMs() - askedAtMs };
  return { ...outcome, start };
}

/** What becomes of the slot, and of the sandbox. */
async function settle(
  ctx: CreationContext,
  claim: SlotRow,
  made: WorkerCreation,
  { askedAtMs, holderNow }: { readonly askedAtMs: number; readonly holderNow: () => Holder | null },
): Promise<CreationOutcome> {
  switch (made.kind) {
    case "created":
      return publish(
        ctx,
        claim,
        { ...made, askedAtMs, maxAtMs: replaceAtMs(ctx, claim.slot, askedAtMs) },
        holderNow(),
      );
    case "refused":
      await freeClaim(ctx, claim);
      return { kind: "failed", fault: made.fault, claim: null };
    case "unproved":
      if (!(await isKilled(ctx, made.sandboxId))) return { kind: "failed", fault: made.fault, claim };
      await freeClaim(ctx, claim);
      return { kind: "failed", fault: made.fault, claim: null };
    case "ambiguous":
      return { kind: "failed", fault: made.fault, claim };
    default:
      return made satisfies never;
  }
}

/** Until when a creation may start, so that it is over while the slot is still ours. */
function lastStartMs({ settings }: CreationContext, claim: SlotRow): number {
  return (claim.leaseUntilMs ?? 0) - settings.createTimeoutMs - settings.graceMs;
}

async function createInTime(ctx: CreationContext, claim: SlotRow, poolId: string) {
  const timeout = new AbortController();
  const done = new AbortController();
  void ctx.clock.sleep(ctx.settings.createTimeoutMs, done.signal).then(() => {
    if (!done.signal.aborted) timeout.abort();
  });
  const order = { poolId, slot: claim.slot, generation: claim.generation, ttlMs: ctx.settings.ttlMs };
  try {
    return await ctx.workers.create(order, timeout.signal);
  } finally {
    done.abort();
  }
}

async function publish(
  ctx: CreationContext,
  claim: SlotRow,
  made: Parameters<typeof publishWorker>[2],
  holder: Holder | null,
): Promise<CreationOutcome> {
  const row = await publishWorker(ctx, claim, made, holder);
  const worker = row === null ? null : workerOf(row);
  if (worker !== null) {
    return worker.fence === claim.fence ? { kind: "published", row: worker } : { kind: "not_now" };
  }
  // We took too long, or the worker isn't wanted any more: the slot was taken from us.
  if (await isKilled(ctx, made.sandboxId)) await freeClaim(ctx, claim);
  return { kind: "not_now" };
}

/** Frees the slot of a claim that surely has no sandbox (any more), also when the claim was taken from us to drain. */
async function freeClaim(ctx: CreationContext, claim: SlotRow): Promise<void> {
  if (!(await unclaimSlot(ctx, claim))) await freeTakenClaim(ctx, claim);
}

/** The golden ratio: its multiples are spread evenly over the whole numbers' gaps, however many there are. */
const goldenRatio = 0.618_033_988_75;

/**
 * From when a worker is replaced: between two thirds and five sixths of the plan's life.
 *
 * Spread by the slot, so that workers created together aren't replaced together, not even by chance; and never near the
 * end, which the provider's clock decides.
 */
function replaceAtMs({ settings }: CreationContext, slot: number, askedAtMs: number): number {
  const share = (slot * goldenRatio) % 1;
  return askedAtMs + Math.round(settings.lifeMs * (2 / 3 + share / 6));
}
