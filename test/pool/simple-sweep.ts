/** The least that heals a pool: expire, renew, replace, kill what no slot knows. For simulations of the leases. */

import { readPool } from "../../functions/pool/pool-view.ts";
import type { Sandboxes } from "../../functions/pool/ports.ts";
import type { SlotRow } from "../../functions/pool/slot-row.ts";
import { drainSlot, expireSlot } from "../../functions/pool/slots/drain.ts";
import { emptySlot } from "../../functions/pool/slots/empty.ts";
import { recordRenewal } from "../../functions/pool/slots/renew.ts";
import type { SlotContext } from "../../functions/pool/slots/write.ts";

const renewBelowMs = 400_000;

/** One pass. The provider is listed before the table is read: what the list shows was claimed before that. */
export async function sweep(ctx: SlotContext, sandboxes: Sandboxes, poolId: string): Promise<void> {
  const listed = await sandboxes.list(poolId);
  const { slots } = await readPool(ctx);
  for (const sandbox of listed) {
    const row = slots.find(({ slot }) => slot === sandbox.slot);
    const isKnown =
      row?.generation === sandbox.generation &&
      (row.sandboxId === sandbox.sandboxId || row.state === "creating" || row.state === "draining");
    if (!isKnown) await sandboxes.kill(sandbox.sandboxId);
  }
  const alive = new Set(listed.map(({ sandboxId }) => sandboxId));
  for (const row of slots) await sweepSlot(ctx, sandboxes, poolId, row, alive);
}

async function sweepSlot(
  ctx: SlotContext,
  sandboxes: Sandboxes,
  poolId: string,
  row: SlotRow,
  alive: ReadonlySet<string>,
): Promise<void> {
  const nowMs = ctx.clock.nowMs();
  const isTaken = row.state === "creating" || row.state === "leased" || row.state === "draining";
  const isExpired = isTaken && (row.leaseUntilMs ?? 0) < nowMs - ctx.settings.graceMs;
  const isWorn = row.state === "ready" && (row.maxAtMs ?? 0) < nowMs + ctx.settings.minRemainingMs;
  const isDead =
    row.state === "ready" && !alive.has(row.sandboxId ?? "") && (row.bornAtMs ?? 0) < nowMs - 60_000;
  if (isExpired || isWorn || isDead) {
    const drain = isExpired ? await expireSlot(ctx, row) : await drainSlot(ctx, row);
    if (drain !== null && (await killAll(sandboxes, poolId, drain))) await emptySlot(ctx, drain);
    return;
  }
  const isServing = row.state === "ready" || row.state === "leased";
  if (!isServing || row.sandboxId === undefined || (row.ttlAtMs ?? 0) > nowMs + renewBelowMs) return;
  const renewed = await sandboxes.renew(row.sandboxId, ctx.settings.ttlMs);
  if (renewed.kind === "done") await recordRenewal(ctx, row.slot, row.sandboxId, nowMs + ctx.settings.ttlMs);
}

/** Kills the slot's sandbox and any that came of a creation without an answer; whether none is left. */
async function killAll(sandboxes: Sandboxes, poolId: string, drain: SlotRow): Promise<boolean> {
  const listed = (await sandboxes.list(poolId)).filter(
    ({ slot, generation }) => slot === drain.slot && generation <= drain.generation,
  );
  const ids = new Set(listed.map(({ sandboxId }) => sandboxId));
  if (drain.sandboxId !== undefined) ids.add(drain.sandboxId);
  const kills = await Promise.all([...ids].map((id) => sandboxes.kill(id)));
  return kills.every(({ kind }) => kind !== "failed");
}
