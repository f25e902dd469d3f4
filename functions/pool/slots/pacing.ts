/**
 * Pacing: at most one creation per interval, over all handlers.
 *
 *   ── admitted ───────── interval ─────────▶ nextCreateAtMs ── the next one is admitted from here ──▶
 *
 * A time that is further ahead than an interval comes of a clock that is fast, and is nobody's: believing it would stop
 * all creations until time has come to where that clock was.
 */
import type { RowKey } from "../ports.ts";
import { expressionOver, poolPartition } from "../slot-row.ts";
import { type SlotContext, writeRow } from "./write.ts";

export const pacingKey: RowKey = { pk: poolPartition, sk: "B" };
const columns = { nextCreateAtMs: "next", owner: "own" };

const nobodyCreatedYet = "attribute_not_exists(#nextCreateAtMs)";
const intervalIsOver = "#nextCreateAtMs <= :nowMs";
/** The very time that was seen: by the writer's clock alone, a write that lands late would take a right one for fast. */
const isOfAFastClock = "#nextCreateAtMs = :tooFarMs";
const none = -1;

export const admitCreationExpression = expressionOver(columns, {
  name: "admit creation",
  update: "SET #nextCreateAtMs = :nextCreateAtMs, #owner = :owner",
  clauses: [`(${nobodyCreatedYet} OR ${intervalIsOver} OR ${isOfAFastClock})`],
});

/** Whether one sandbox may be created now; true uses the interval up, whatever becomes of the creation. */
export async function admitCreation(ctx: SlotContext): Promise<boolean> {
  if (await writeAdmission(ctx, none)) return true;
  const next = (await ctx.table.get(pacingKey))?.[columns.nextCreateAtMs];
  return typeof next === "number" && next > believedUntilMs(ctx) && writeAdmission(ctx, next);
}

async function writeAdmission(ctx: SlotContext, tooFarMs: number): Promise<boolean> {
  const nowMs = ctx.clock.nowMs();
  const owner = ctx.newId();
  const row = await writeRow(
    ctx.table,
    pacingKey,
    admitCreationExpression,
    {
      ":nowMs": nowMs,
      ":tooFarMs": tooFarMs,
      ":nextCreateAtMs": nowMs + ctx.settings.createIntervalMs,
      ":owner": owner,
    },
    (stored) => stored[columns.owner] === owner,
  );
  return row !== null;
}

function believedUntilMs({ clock, settings }: Pick<SlotContext, "clock" | "settings">): number {
  return clock.nowMs() + settings.createIntervalMs + settings.graceMs;
}

/** From when a creation may be admitted, by the pool's pacing row. */
export function nextCreateAtMs(
  ctx: Pick<SlotContext, "clock" | "settings">,
  stored: Readonly<Record<string, unknown>> | undefined,
): number {
  const at = stored?.[columns.nextCreateAtMs];
  return typeof at === "number" && at <= believedUntilMs(ctx) ? at : 0;
}
