/**
 * The record of a batch that its client gave a key.
 *
 *   begin ──▶ running ⟲ extend ── answer ──▶ answered    answers the same request for an hour
 *             ▲    │ └─────────── end ─────▶ over ─────┐  no answer to keep: who sends it again begins anew
 *             │    └───────────── cancel ──▶ cancelled ┤  the same
 *             ├────────────────── begin ◀──────────────┘
 *             └── begin, when the lease has expired: its holder is dead or frozen
 *
 * Theory of operation
 * - An attempt holds the record by a lease, as a worker is held by one, and extends it while it works. A batch that is
 *   shorter than the time between two extensions costs two writes: its beginning and its end.
 * - Each beginning gets a fence that is larger than all before it, and every later write of the attempt names it. One
 *   that was overtaken (frozen, cut off) can't end, answer or extend any more, and learns that it must not answer.
 * - A fence is the time at which the attempt began, if no earlier one was larger: rows are deleted when their hour is
 *   over, and fences must not begin again at one.
 * - The head row makes an answer valid. It holds the first part of it; what is beyond is written before, into rows that
 *   bear the attempt's fence in their key, so that parts of two attempts never mix. It also holds a seal of the whole,
 *   of this batch and this attempt, without which nothing is answered.
 * - Rows may outlive their hour for days: every reader looks at the time itself.
 *
 * Batches without a key have no record: nobody could name them.
 */
import type { RowKey, StoredRow } from "../ports.ts";
import type { SlotContext } from "../slots/write.ts";

/** How long a record is kept, counted from the beginning of its attempt and again from its answer. */
export const recordLifeS = 3_600;

export type BatchState = "running" | "answered" | "over" | "cancelled";

/** What makes two requests the same. */
export interface BatchKey {
  /** The batch's name; one per caller and key. */
  readonly batchId: string;
  /** Of the request's body. */
  readonly bodyHash: string;
}

/** The right to write a batch's record, until another has it. */
export interface BatchClaim {
  readonly batchId: string;
  readonly fence: number;
  /** Which attempt at the batch it is, the first one being 1: what its slots say. */
  readonly attemptNumber: number;
}

export interface BatchRecord {
  readonly state: BatchState;
  readonly fence: number;
  /** Nonce of the beginning: tells a writer whose answer was lost that it won. */
  readonly attempt: string;
  /** How many attempts there were with this one; those of former versions were not counted. */
  readonly attemptNumber: number;
  readonly bodyHash: string;
  readonly leaseUntilMs: number;
  readonly recordUntilS: number;
  /** Of an answered batch: the first part of the answer, and how many rows hold the rest. */
  readonly firstPart?: Uint8Array;
  readonly moreParts: number;
  /** The entry of the run's ledger that goes with the answer, as JSON. */
  readonly entry?: string;
  /** Of an answered batch: what its whole answer must match. Former versions wrote none, and left another attempt's. */
  readonly seal?: string;
}

export const batchColumns = {
  state: "st",
  fence: "f",
  attempt: "own",
  attemptNumber: "no",
  bodyHash: "bh",
  leaseUntilMs: "lu",
  recordUntilS: "expiresAtS",
  firstPart: "a",
  moreParts: "n",
  entry: "en",
  seal: "sl",
} as const satisfies Record<keyof BatchRecord, string>;

export type RecordContext = Pick<SlotContext, "table" | "clock" | "settings" | "newId">;

export const isStillOurs = "#fence = :fence";
export const isRunning = "#state = :running";

export function batchKeyOf(batchId: string): RowKey {
  return { pk: `B#${batchId}`, sk: "B" };
}

/** The record as it is stored, also when its hour is over; null without one. Throws the table's faults. */
export async function readBatch(
  { table }: Pick<RecordContext, "table">,
  batchId: string,
): Promise<BatchRecord | null> {
  const row = await table.get(batchKeyOf(batchId));
  return row === undefined ? null : readRow(row);
}

/** Whether the record's hour is over, so that it counts as if it were not there. */
export function isForgotten({ recordUntilS }: BatchRecord, nowMs: number): boolean {
  return recordUntilS * 1_000 <= nowMs;
}

/** The end of the hour that begins now, in seconds since 1970. */
export function recordUntilS(nowMs: number): number {
  return Math.ceil(nowMs / 1_000) + recordLifeS;
}

function readRow(row: StoredRow): BatchRecord {
  const firstPart = row[batchColumns.firstPart];
  const entry = row[batchColumns.entry];
  const seal = row[batchColumns.seal];
  return {
    state: row[batchColumns.state] as BatchState,
    fence: Number(row[batchColumns.fence]),
    attempt: String(row[batchColumns.attempt]),
    attemptNumber: Number(row[batchColumns.attemptNumber] ?? 0),
    bodyHash: String(row[batchColumns.bodyHash]),
    leaseUntilMs: Number(row[batchColumns.leaseUntilMs]),
    recordUntilS: Number(row[batchColumns.recordUntilS]),
    moreParts: Number(row[batchColumns.moreParts] ?? 0),
    ...(firstPart instanceof Uint8Array ? { firstPart } : {}),
    ...(typeof entry === "string" && entry !== "" ? { entry } : {}),
    ...(typeof seal === "string" ? { seal } : {}),
  };
}
