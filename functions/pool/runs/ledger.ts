/**
 * A run's ledger: a row for each batch that was graded for it, or tried, and for each worker whose start was paid.
 *
 * Theory of operation
 * - What is counted must be counted once, though writes are repeated, answers get lost and containers die. So an entry
 *   has a key that its attempt fixes before the first write, and every value in it is set and none is added: written
 *   once or ten times it is the same row.
 * - The run's row has the totals of all entries up to a place (`foldedUntil`), and a total is that and the entries behind
 *   it. The sweep moves the place on and adds what it passed, in one write under one condition (`fold-ledger.ts`).
 *   Entries are never marked or removed by anybody, so whoever reads the run's row first and the ledger after it has an
 *   exact sum, whatever is folded meanwhile; and one that is written again after it was folded is counted no more.
 * - An entry's place is the time, or just behind `foldedUntil` for a clock that is slow. The sweep passes only places of
 *   long ago, so nobody can write behind it who has read the run in the same request.
 * - A finished run gets no entry but from who has read it before it was finished: its last batches may be counted a
 *   moment after its first answer.
 * - Each run's ledger is a partition of its own, so that no key is hot and a total needs one query. Rows that nobody
 *   needs any more are deleted by their time.
 */
import type { VerdictKind } from "../../grading/verdict.ts";
import type { RowKey, StoredRow, UpdateExpression } from "../ports.ts";
import { expressionOver } from "../slot-row.ts";
import type { SlotContext } from "../slots/write.ts";
import {
  type RunRow,
  type RunTotals,
  readTotals,
  recordUntilS,
  runColumns,
  verdictKinds,
} from "./run-row.ts";

/** What one batch adds to its run. */
export interface BatchNote {
  /** 0 for an attempt at a batch that another attempt has, or will have: only its cost counts. Default: 1. */
  readonly batches?: 0 | 1;
  readonly samples: number;
  /** Verdicts of test cases, by kind. */
  readonly verdicts: Readonly<Partial<Record<VerdictKind, number>>>;
  /** Samples without a reward. */
  readonly faults: number;
  readonly retries: number;
  readonly workersCreated: number;
  /** Time for which it held workers, added up. */
  readonly busyMs: number;
  /** Worker time of its own that its answer told. Default: what it held workers for. */
  readonly reportedMs?: number;
}

/** Where an entry is: fixed before it is first written. */
export interface LedgerPlace {
  readonly runId: string;
  readonly place: number;
  /** Of the attempt, or of the worker. */
  readonly id: string;
}

/** A batch's entry: where it is, and what it says. */
export interface BatchEntry {
  readonly at: LedgerPlace;
  readonly note: BatchNote;
}

/** Entries of a run, added up. */
export interface LedgerSum {
  readonly totals: Omit<RunTotals, "idleMs">;
  readonly spentMs: number;
  readonly reportedMs: number;
  /** When the last batch of them was noted; 0 without one. */
  readonly lastBatchAtMs: number;
}

export interface LedgerEntry extends LedgerSum {
  readonly place: number;
}

const columns = { ...runColumns, notedAtMs: "at" };
/** The counts of a run that its entries make up, beside its verdicts. */
export const countWords = [
  "batches",
  "samples",
  "faults",
  "retries",
  "workersCreated",
  "busyMs",
  "startMs",
] as const;

/** Sets all of a batch's entry, its result and its cost. */
export const noteBatchExpression = setting("note batch", [
  ...countWords.filter((word) => word !== "startMs"),
  "reportedMs",
  ...verdictKinds,
]);

/** Sets the cost of an attempt that has no result (yet): what its entry says of one stays. */
export const noteCostExpression = setting("note cost of batch", ["workersCreated", "busyMs"]);

export const noteStartExpression = setting("note start of worker", ["startMs"]);

function setting(name: string, words: readonly (keyof typeof columns)[]): UpdateExpression {
  const all = [...words, "notedAtMs", "recordUntilS"];
  const update = `SET ${all.map((word) => `#${word} = :${word}`).join(", ")}`;
  return expressionOver(columns, { name, update, clauses: [] });
}

const partition = (runId: string) => `L#${runId}`;
/** Places are whole numbers, and compared as texts. */
const placeText = (place: number) => String(place).padStart(16, "0");

function entryKey({ runId, place, id }: LedgerPlace): RowKey {
  return { pk: partition(runId), sk: `${placeText(place)}#${id}` };
}

/** A place for a new entry, behind all that was folded. */
export function newPlace(
  { clock }: Pick<SlotContext, "clock">,
  run: Pick<RunRow, "runId" | "foldedUntil">,
  id: string,
): LedgerPlace {
  return { runId: run.runId, place: Math.max(Math.floor(clock.nowMs()), run.foldedUntil + 1), id };
}

type LedgerContext = Pick<SlotContext, "table" | "clock">;

/** Writes a batch's result and cost. Throws the table's faults, and may be repeated. */
export async function writeBatchEntry(ctx: LedgerContext, at: LedgerPlace, note: BatchNote): Promise<void> {
  const verdicts = verdictKinds.map((kind) => [`:${kind}`, note.verdicts[kind] ?? 0] as const);
  await write(ctx, at, noteBatchExpression, {
    ...Object.fromEntries(verdicts),
    ":batches": note.batches ?? 1,
    ":samples": note.samples,
    ":faults": note.faults,
    ":retries": note.retries,
    ":workersCreated": note.workersCreated,
    ":busyMs": Math.round(note.busyMs),
    ":reportedMs": Math.round(note.reportedMs ?? note.busyMs),
  });
}

/** What a batch's entry says: its result and cost, or what it cost alone. Throws the table's faults. */
export async function findEntry(
  { table }: Pick<SlotContext, "table">,
  at: LedgerPlace,
): Promise<"result" | "cost" | "none"> {
  const row = await table.get(entryKey(at));
  if (row === undefined) return "none";
  return row[columns.batches] === undefined ? "cost" : "result";
}

/** Writes what an attempt without a result has cost. Throws the table's faults, and may be repeated. */
export function writeCostEntry(
  ctx: LedgerContext,
  at: LedgerPlace,
  { workersCreated, busyMs }: Pick<BatchNote, "workersCreated" | "busyMs">,
): Promise<void> {
  const values = { ":workersCreated": workersCreated, ":busyMs": Math.round(busyMs) };
  return write(ctx, at, noteCostExpression, values);
}

/** Writes what a worker has cost until it was ready. Throws the table's faults, and may be repeated. */
export function writeStartEntry(ctx: LedgerContext, at: LedgerPlace, startMs: number): Promise<void> {
  return write(ctx, at, noteStartExpression, { ":startMs": Math.round(startMs) });
}

async function write(
  { table, clock }: LedgerContext,
  at: LedgerPlace,
  expression: UpdateExpression,
  values: Readonly<Record<string, number>>,
): Promise<void> {
  const nowMs = clock.nowMs();
  const times = { ":notedAtMs": nowMs, ":recordUntilS": recordUntilS(nowMs) };
  await table.update(entryKey(at), expression, { ...values, ...times });
}

/** The run's entries that its row does not have yet, in order. The run must have been read before. */
export async function readLedger(
  { table }: Pick<SlotContext, "table">,
  { runId, foldedUntil }: Pick<RunRow, "runId" | "foldedUntil">,
): Promise<LedgerEntry[]> {
  const rows = await table.query(partition(runId), "", placeText(foldedUntil + 1));
  return rows.map(readEntry).filter(({ place }) => place > foldedUntil);
}

function readEntry(stored: StoredRow): LedgerEntry {
  const count = (column: string) => (typeof stored[column] === "number" ? stored[column] : 0);
  const { idleMs: _, ...totals } = readTotals(stored);
  const isOfBatch = stored[columns.batches] !== undefined;
  return {
    place: Number.parseInt(String(stored.sk), 10),
    totals,
    spentMs: totals.busyMs + totals.startMs,
    reportedMs: count(columns.reportedMs),
    lastBatchAtMs: isOfBatch ? count(columns.notedAtMs) : 0,
  };
}

const nothing: LedgerSum = {
  totals: readEntry({ sk: "0" }).totals,
  spentMs: 0,
  reportedMs: 0,
  lastBatchAtMs: 0,
};

export function sumEntries(entries: readonly LedgerSum[]): LedgerSum {
  return entries.reduce(add, nothing);
}

function add(one: LedgerSum, other: LedgerSum): LedgerSum {
  const counts = countWords.map((word) => [word, one.totals[word] + other.totals[word]] as const);
  const verdicts = verdictKinds.map(
    (kind) => [kind, one.totals.verdicts[kind] + other.totals.verdicts[kind]] as const,
  );
  return {
    totals: { ...Object.fromEntries(counts), verdicts: Object.fromEntries(verdicts) } as LedgerSum["totals"],
    spentMs: one.spentMs + other.spentMs,
    reportedMs: one.reportedMs + other.reportedMs,
    lastBatchAtMs: Math.max(one.lastBatchAtMs, other.lastBatchAtMs),
  };
}

/** The run with what its row does not have yet: its totals are exact, and its last batch is a sign of life. */
export function withEntries(run: RunRow, entries: readonly LedgerEntry[], nowMs: number): RunRow {
  const sum = add(sumEntries(entries), { ...nothing, totals: run.totals });
  return {
    ...run,
    // An entry of a clock that is fast must not keep the run alive.
    beatAtMs: Math.max(run.beatAtMs, Math.min(nowMs, sum.lastBatchAtMs)),
    totals: { ...sum.totals, idleMs: run.totals.idleMs },
    spentMs: run.spentMs + sum.spentMs,
    reportedMs: run.reportedMs + sum.reportedMs,
  };
}
