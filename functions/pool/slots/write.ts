/**
 * How every slot is written: one conditional update, and the question who won when the answer was lost.
 *
 * Theory of operation. All coordination is in the conditions of single-row updates; there are no transactions and no
 * clocks to agree on beyond `graceMs`. A row's `fence` is raised by whoever takes the slot and is named by whoever
 * acts on what it took or read, so nobody who was overtaken (frozen, cut off, slow) can write any more.
 *
 *            claim             publish             acquire, take over
 *   empty ─────────▶ creating ─────────▶ ready ◀──────────────▶ leased ⟲ extend, hand over
 *     ▲                 │     unclaim      │       release         │
 *     │◀────────────────┘                  ▼                       ▼
 *     └───────────────────────────────  draining ◀── expire, drain, release (broken)
 *                    empty (after the kill)
 *
 * A client that gets no answer sends the write again, and its second attempt then fails the condition that its own
 * first one made false. So a refusal after a retry is checked against the row: a nonce (`owner`) or the fence and the
 * target state tell whether we won. A refusal at the first attempt needs no look.
 */
import type { Clock } from "../../rewards/ports.ts";
import type { RowKey, Scalar, StoredRow, Table, UpdateExpression } from "../ports.ts";
import type { PoolSettings } from "../settings.ts";
import { readSlotRow, type SlotRow, slotKey } from "../slot-row.ts";

export interface SlotContext {
  readonly table: Table;
  readonly clock: Clock;
  /** A new nonce, unlike any other; about eight characters. */
  readonly newId: () => string;
  readonly settings: PoolSettings;
}

/** Who holds a lease: tags of the run and of the batch. */
export interface Holder {
  readonly runTag: string;
  readonly batchTag: string;
  /** How long the batch has waited for this lease; none said is none waited. */
  readonly waitedMs?: number;
}

/** What names a taken slot in later writes. */
export interface Fenced {
  readonly slot: number;
  readonly fence: number;
}

type Values = Readonly<Record<string, Scalar>>;

/** Writes; the row as it is when we won, null when another did. */
export async function writeRow(
  table: Table,
  key: RowKey,
  expression: UpdateExpression,
  values: Values,
  isOurs: (row: StoredRow) => boolean,
): Promise<StoredRow | null> {
  const outcome = await table.update(key, expression, values);
  if (outcome.kind === "applied") return outcome.row;
  if (!outcome.retried) return null;
  const row = await table.get(key);
  return row !== undefined && isOurs(row) ? row : null;
}

/** `writeRow` for a slot. */
export async function writeSlot(
  { table }: SlotContext,
  slot: number,
  expression: UpdateExpression,
  values: Values,
  isOurs: (row: SlotRow) => boolean,
): Promise<SlotRow | null> {
  const ours = (stored: StoredRow) => {
    const row = readSlotRow(stored);
    return row !== null && isOurs(row);
  };
  const row = await writeRow(table, slotKey(slot), expression, values, ours);
  return row === null ? null : readSlotRow(row);
}
