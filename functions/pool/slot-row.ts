/**
 * A slot's row: the place for one worker.
 *
 * All slots are rows of one partition and are never deleted, so there can't be more workers than slots. A query reads
 * them all, several times a second when the pool is full: rows are kept below 300 bytes, and as a column's name counts
 * like its value, columns are stored under short names. Code and expressions speak the long ones.
 */
import { createHash } from "node:crypto";
import { Fault } from "../rewards/faults.ts";
import type { RowKey, Scalar, StoredRow, UpdateExpression, WorkerAddress } from "./ports.ts";

export const slotStates = ["empty", "creating", "ready", "leased", "draining"] as const;
export type SlotState = (typeof slotStates)[number];

export interface SlotRow {
  readonly slot: number;
  readonly state: SlotState;
  /** Only grows. Raised whenever the right to the slot changes hands; sent to the supervisor as the fencing token. */
  readonly fence: number;
  /** The fence at the claim: names one life of the slot, and is in its sandbox's metadata. */
  readonly generation: number;
  readonly sandboxId?: string;
  readonly access?: string;
  /** New for each write that takes the slot: tells a writer whose answer was lost that it won. */
  readonly owner?: string;
  /** Until when the creator, holder or drainer has the slot for itself, or a free worker is kept for a batch. */
  readonly leaseUntilMs?: number;
  readonly bornAtMs?: number;
  /** When the sandbox dies unless renewed. */
  readonly ttlAtMs?: number;
  /** From when the worker is replaced, before the plan's life ends. */
  readonly maxAtMs?: number;
  /** Since when the worker is free, or its holder's; absent until it was first leased or given back. */
  readonly lastUsedAtMs?: number;
  /** How long the last one who leased it had waited for that: tells those who come how long they may have to wait. */
  readonly waitedMs?: number;
  readonly supervisorVersion?: string;
  /** Tag of the run that the worker was created for. */
  readonly createdForRun?: string;
  /** Tags of the run and of the batch's attempt that hold the lease; of a free worker, of the batch that it is kept for. */
  readonly heldForRun?: string;
  readonly heldForBatch?: string;
}

/** A row that has a worker. */
export type WorkerRow = SlotRow &
  WorkerAddress & { readonly ttlAtMs: number; readonly maxAtMs: number; readonly leaseUntilMs?: number };

/** Stored column of each word. */
export const slotColumns = {
  state: "st",
  fence: "f",
  generation: "gen",
  sandboxId: "sb",
  access: "acc",
  owner: "own",
  leaseUntilMs: "lu",
  bornAtMs: "bo",
  ttlAtMs: "ttl",
  maxAtMs: "max",
  lastUsedAtMs: "us",
  waitedMs: "w",
  supervisorVersion: "ver",
  createdForRun: "run",
  heldForRun: "hr",
  heldForBatch: "hb",
} as const satisfies Record<Exclude<keyof SlotRow, "slot">, string>;

export const poolPartition = "pool";
const slotPrefix = "S#";

export function slotKey(slot: number): RowKey {
  return { pk: poolPartition, sk: `${slotPrefix}${String(slot).padStart(3, "0")}` };
}

/** Eight characters that stand for a name of any length: rows have no room for names that clients choose. */
export function shortTag(name: string): string {
  return createHash("sha256").update(name).digest("base64url").slice(0, 8);
}

/** An update of a row whose spoken words are stored under other names; throws on a word that it does not have. */
export function expressionOver(
  columns: Readonly<Record<string, string>>,
  spoken: Pick<UpdateExpression, "name" | "update" | "clauses">,
): UpdateExpression {
  const used = new Set([spoken.update, ...spoken.clauses].join(" ").match(/#\w+/g) ?? []);
  const stored = [...used].map((placeholder) => {
    const column = columns[placeholder.slice(1)];
    if (column === undefined) throw new TypeError(`${spoken.name}: no column for ${placeholder}`);
    return [placeholder, column] as const;
  });
  return { ...spoken, columns: Object.fromEntries(stored) };
}

/** An update of a slot. */
export function slotExpression(
  spoken: Pick<UpdateExpression, "name" | "update" | "clauses">,
): UpdateExpression {
  return expressionOver(slotColumns, spoken);
}

const numbers = ["leaseUntilMs", "bornAtMs", "ttlAtMs", "maxAtMs", "lastUsedAtMs", "waitedMs"] as const;
const strings = [
  "sandboxId",
  "access",
  "owner",
  "supervisorVersion",
  "createdForRun",
  "heldForRun",
  "heldForBatch",
] as const;

/** A slot that was never used has no row yet. */
export function unusedSlot(slot: number): SlotRow {
  return { slot, state: "empty", fence: 0, generation: 0 };
}

/** The slot that a stored row describes; null for the partition's other rows. Throws a `Fault` on one that it can't read. */
export function readSlotRow(stored: StoredRow): SlotRow | null {
  const sk = String(stored.sk);
  if (!sk.startsWith(slotPrefix)) return null;
  const state = slotStates.find((known) => known === stored[slotColumns.state]);
  const fence = stored[slotColumns.fence];
  if (state === undefined || typeof fence !== "number") {
    // Treating it as empty could put a second sandbox into its place.
    throw new Fault("misconfigured", `the table's row ${sk} is not a slot that this version understands`);
  }
  const generation = stored[slotColumns.generation];
  return {
    slot: Number(sk.slice(slotPrefix.length)),
    state,
    fence,
    generation: typeof generation === "number" ? generation : 0,
    ...pick(stored, numbers, "number"),
    ...pick(stored, strings, "string"),
  };
}

function pick(stored: StoredRow, words: readonly (keyof typeof slotColumns)[], type: "number" | "string") {
  // Plain loops: whoever waits reads all rows several times a second.
  const picked: Record<string, Scalar> = {};
  for (const word of words) {
    const value = stored[slotColumns[word]];
    if (typeof value === type && value !== undefined) picked[word] = value;
  }
  return picked;
}

/** The worker in a slot; null when it has none. */
export function workerOf(row: SlotRow): WorkerRow | null {
  const { sandboxId, access, ttlAtMs, maxAtMs } = row;
  if (sandboxId === undefined || access === undefined || ttlAtMs === undefined || maxAtMs === undefined)
    return null;
  return { ...row, sandboxId, access, ttlAtMs, maxAtMs };
}
