/**
 * Idle time: what workers cost while nobody used them, split among the runs that wanted them.
 *
 * Idle is what is left of the workers' lives: time alive, less what finished batches held them for (they say so in
 * their runs' totals), less what leases that go on now have held them for. It is worked out for the time since the
 * last pass that did so, which a row remembers; whoever moves that row on hands the interval out, so two passes at once
 * don't hand it out twice. One that dies in between loses at most an interval: never a double charge.
 */
import type { StoredRow } from "../ports.ts";
import { addIdleShare } from "../runs/idle-share.ts";
import { type RunRow, runExpiresAtMs, runPartition } from "../runs/run-row.ts";
import { expressionOver, type SlotRow } from "../slot-row.ts";
import { type SlotContext, writeRow } from "../slots/write.ts";
import type { Demand } from "./demand.ts";

/** What the last pass left. */
export interface IdleLedger {
  readonly untilMs: number;
  /** Of all remembered runs together. */
  readonly busyMs: number;
  /** Held by leases that went on then. */
  readonly heldMs: number;
  /** Idle time counted too much so far (below zero): busy time is known only when a batch ends. */
  readonly owedMs: number;
}

export interface IdleShare {
  readonly runId: string;
  readonly idleMs: number;
}

const emptyLedger: IdleLedger = { untilMs: 0, busyMs: 0, heldMs: 0, owedMs: 0 };
/** A debt that grew beyond this comes of workers that died uncounted, and is forgiven. */
const mostOwedMs = 600_000;

const ledgerKey = { pk: runPartition, sk: "idle" };
const columns = { untilMs: "until", busyMs: "busy", heldMs: "held", owedMs: "owed", owner: "own" };
const nobodyCounted = "attribute_not_exists(#untilMs)";
const isAsWeReadIt = "#untilMs = :seenUntilMs";

export const idleLedgerExpression = expressionOver(columns, {
  name: "move idle ledger",
  update: "SET #untilMs = :untilMs, #busyMs = :busyMs, #heldMs = :heldMs, #owedMs = :owedMs, #owner = :owner",
  clauses: [`(${nobodyCounted} OR ${isAsWeReadIt})`],
});

/** Hands the idle time since the last pass to its runs; how much that was. Throws the table's faults. */
export async function shareIdleTime(
  ctx: Pick<SlotContext, "table" | "newId">,
  demand: Demand,
): Promise<number> {
  const before = readLedger(await ctx.table.get(ledgerKey));
  if (demand.nowMs <= before.untilMs) return 0;
  const { ledger, shares } = splitIdleTime(before, demand);
  if (!hasChanged(before, ledger) && shares.length === 0) return 0;
  if (!(await moveLedger(ctx, before, ledger))) return 0;
  await Promise.all(shares.map(({ runId, idleMs }) => addIdleShare(ctx, runId, idleMs, ledger.untilMs)));
  return shares.reduce((sum, { idleMs }) => sum + idleMs, 0);
}

async function moveLedger(
  ctx: Pick<SlotContext, "table" | "newId">,
  before: IdleLedger,
  ledger: IdleLedger,
): Promise<boolean> {
  const owner = ctx.newId();
  const values = {
    ":seenUntilMs": before.untilMs,
    ":untilMs": ledger.untilMs,
    ":busyMs": ledger.busyMs,
    ":heldMs": ledger.heldMs,
    ":owedMs": ledger.owedMs,
    ":owner": owner,
  };
  const isOurs = (row: StoredRow) => row[columns.owner] === owner;
  return (await writeRow(ctx.table, ledgerKey, idleLedgerExpression, values, isOurs)) !== null;
}

function readLedger(stored: StoredRow | undefined): IdleLedger {
  const read = (column: string) => (typeof stored?.[column] === "number" ? stored[column] : 0);
  if (stored === undefined) return emptyLedger;
  return {
    untilMs: read(columns.untilMs),
    busyMs: read(columns.busyMs),
    heldMs: read(columns.heldMs),
    owedMs: read(columns.owedMs),
  };
}

/** Without workers and work the ledger need not be written every minute. */
function hasChanged(before: IdleLedger, after: IdleLedger): boolean {
  return before.busyMs !== after.busyMs || before.heldMs !== after.heldMs || before.owedMs !== after.owedMs;
}

/** The idle time since the ledger was moved, by run, and the ledger after it. Whole milliseconds. */
export function splitIdleTime(
  before: IdleLedger,
  { slots, runs, nowMs }: Pick<Demand, "slots" | "runs" | "nowMs">,
): { readonly ledger: IdleLedger; readonly shares: readonly IdleShare[] } {
  const aliveMs = sum(slots.map((row) => aliveSinceMs(row, before.untilMs, nowMs)));
  const heldMs = sum(slots.map((row) => heldForMs(row, nowMs)));
  const busyMs = sum(runs.map(({ totals }) => totals.busyMs));
  // Records of old runs go, and with them their totals: that is no negative work.
  const workedMs = Math.max(0, busyMs - before.busyMs) + heldMs - before.heldMs;
  const owedMs = before.owedMs + aliveMs - workedMs;
  const ledger = { untilMs: nowMs, busyMs, heldMs, owedMs: Math.max(-mostOwedMs, Math.min(0, owedMs)) };
  return { ledger, shares: splitByWishes(Math.max(0, owedMs), runs, before.untilMs, nowMs) };
}

function aliveSinceMs({ bornAtMs }: SlotRow, fromMs: number, nowMs: number): number {
  return bornAtMs === undefined ? 0 : Math.max(0, nowMs - Math.max(fromMs, bornAtMs));
}

function heldForMs({ state, lastUsedAtMs, bornAtMs }: SlotRow, nowMs: number): number {
  return state === "leased" ? Math.max(0, nowMs - (lastUsedAtMs ?? bornAtMs ?? nowMs)) : 0;
}

/** Each run's part is what it wished for, for as long as it lived in that time. Nobody's idle time is nobody's cost. */
function splitByWishes(idleMs: number, runs: readonly RunRow[], fromMs: number, nowMs: number): IdleShare[] {
  const wishes = runs
    .filter(({ finishedAtMs }) => finishedAtMs === undefined)
    .map((run) => {
      const livedMs = Math.min(nowMs, runExpiresAtMs(run)) - Math.max(fromMs, run.registeredAtMs);
      return { runId: run.runId, wish: run.workers * Math.max(0, livedMs) };
    });
  const all = sum(wishes.map(({ wish }) => wish));
  if (all === 0) return [];
  return wishes
    .map(({ runId, wish }) => ({ runId, idleMs: Math.round((idleMs * wish) / all) }))
    .filter((share) => share.idleMs > 0);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
