/** A pool's handlers, all over one table, each with its own clock and nonces. */

import type { Table } from "../../functions/pool/ports.ts";
import { type PoolSettings, plans, poolSettings } from "../../functions/pool/settings.ts";
import type { SlotRow } from "../../functions/pool/slot-row.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { claimSlot } from "../../functions/pool/slots/claim.ts";
import { drainSlot } from "../../functions/pool/slots/drain.ts";
import { publishWorker } from "../../functions/pool/slots/publish.ts";
import type { Holder, SlotContext } from "../../functions/pool/slots/write.ts";

/** 2027-01-15T08:00:00Z */
export const startMs = 1_800_000_000_000;

export const anna: Holder = { runTag: "run-anna", batchTag: "batch-a1" };
export const ben: Holder = { runTag: "run-ben1", batchTag: "batch-b1" };

export function testSettings(overrides: Partial<PoolSettings> = {}): PoolSettings {
  return poolSettings(plans.hobby, { supervisorVersion: "v1", createIntervalMs: 1_000, ...overrides });
}

/** Seeded random numbers in [0, 1) (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

let handlers = 0;

/** A handler; its clock stands still unless moved. */
export interface TestHandler extends SlotContext {
  /** Sets the handler's clock to so long after the start. */
  at(ms: number): TestHandler;
}

export function testHandler(table: Table, overrides: Partial<PoolSettings> = {}): TestHandler {
  handlers += 1;
  const name = handlers.toString(36).padStart(4, "0");
  let nowMs = startMs;
  let nonces = 0;
  const handler: TestHandler = {
    table,
    clock: { nowMs: () => nowMs, sleep: () => Promise.reject(new Error("this handler does not sleep")) },
    newId: () => `${name}${(nonces++).toString(36).padStart(4, "0")}`,
    settings: testSettings(overrides),
    at(ms) {
      nowMs = startMs + ms;
      return handler;
    },
  };
  return handler;
}

/** The same handler over another table. */
export function over(handler: SlotContext, table: Table): SlotContext {
  return { ...handler, table };
}

/** Both tokens of a worker as the provider makes them: 64 hexadecimal digits each. */
export const access = `${"a".repeat(64)} ${"b".repeat(64)}`;

/** A claimed slot. */
export async function claimed(ctx: SlotContext, slot: number): Promise<SlotRow> {
  return present(await claimSlot(ctx, slot, anna.runTag));
}

/** A slot with a free worker, its time to live and life as asked, counted from the handler's now. */
export async function readied(
  ctx: SlotContext,
  slot: number,
  { ttlMs = 600_000, lifeMs = 3_000_000 } = {},
): Promise<SlotRow> {
  const claim = await claimed(ctx, slot);
  return present(await publishWorker(ctx, claim, newWorker(ctx, slot, { ttlMs, lifeMs }), null));
}

export function newWorker(ctx: SlotContext, slot: number, { ttlMs = 600_000, lifeMs = 3_000_000 } = {}) {
  const nowMs = ctx.clock.nowMs();
  return {
    sandboxId: `i${String(slot).padStart(20, "0")}`,
    access,
    askedAtMs: nowMs + ttlMs - ctx.settings.ttlMs,
    maxAtMs: nowMs + lifeMs,
  };
}

/** A slot leased to a holder. */
export async function leased(ctx: SlotContext, slot: number, holder = anna, life = {}): Promise<SlotRow> {
  await readied(ctx, slot, life);
  return present(await acquireSlot(ctx, slot, holder));
}

export function present<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("expected the write to win");
  return value;
}

/** Slot 0 in the given state. */
export async function slotIn(ctx: SlotContext, state: "leased" | "creating" | "draining"): Promise<SlotRow> {
  if (state === "creating") return claimed(ctx, 0);
  if (state === "leased") return leased(ctx, 0);
  return present(await drainSlot(ctx, await readied(ctx, 0)));
}

export function refused(answer: unknown): boolean {
  return answer === null || answer === false;
}

export interface OpenTable {
  /** A table without rows. */
  fresh(): Promise<Table>;
  close(): Promise<void>;
}
