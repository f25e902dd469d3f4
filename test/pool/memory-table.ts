/**
 * A table in memory that evaluates the product's own expression strings.
 *
 * Each operation is atomic and happens in one turn of the event loop, between a wait before it and one after it: with
 * the waits of a virtual clock, that is where a simulation interleaves its processes.
 */
import type { RowKey, Scalar, StoredRow, Table, UpdateOutcome } from "../../functions/pool/ports.ts";
import { checkBindings, holds, updated, ValidationException } from "./expressions.ts";

export interface MemoryTable extends Table {
  readonly counts: { writes: number; refusals: number; gets: number; queries: number };
  /** What was written, in the table's own order. */
  readonly log: { readonly verb: string; readonly sk: string; readonly after: StoredRow }[];
  /** All rows, for assertions: no operation of the table. */
  rows(): StoredRow[];
  /** An update that is over in this very moment. */
  updateNow(...call: Parameters<Table["update"]>): UpdateOutcome;
}

/**
 * `wait` is called before and after each operation; by default it is one turn. `onWrite` is told each applied update,
 * at once and instead of the log.
 */
export function createMemoryTable(
  wait: () => Promise<void> = () => Promise.resolve(),
  onWrite?: (verb: string, sk: string, after: StoredRow, before: StoredRow | undefined) => void,
): MemoryTable {
  /** By partition, by sort key. */
  const partitions = new Map<string, Map<string, StoredRow>>();
  const counts = { writes: 0, refusals: 0, gets: 0, queries: 0 };
  const log: MemoryTable["log"] = [];
  const rowAt = ({ pk, sk }: RowKey) => partitions.get(pk)?.get(sk);

  function putRow({ pk, sk }: RowKey, row: StoredRow): void {
    const partition = partitions.get(pk);
    if (partition === undefined) partitions.set(pk, new Map([[sk, row]]));
    else partition.set(sk, row);
  }

  async function atomically<T>(operation: () => T): Promise<T> {
    await wait();
    const result = operation();
    await wait();
    return result;
  }

  function updateNow(...[key, expression, values]: Parameters<Table["update"]>): UpdateOutcome {
    counts.writes += 1;
    const { update, clauses, columns } = expression;
    checkBindings([update, ...clauses], { columns, values });
    const before = rowAt(key);
    if (clauses.length > 0 && !holds(clauses.join(" AND "), before, { columns, values })) {
      counts.refusals += 1;
      return { kind: "refused", retried: false };
    }
    const after = updated(update, before ?? { ...key }, { columns, values });
    if (after.pk !== key.pk || after.sk !== key.sk) throw new ValidationException("a key can't be updated");
    putRow(key, after);
    if (onWrite === undefined) log.push({ verb: expression.name, sk: key.sk, after });
    else onWrite(expression.name, key.sk, after, before);
    return { kind: "applied", row: after };
  }

  return {
    counts,
    log,
    rows: () => [...partitions.values()].flatMap((partition) => [...partition.values()]),
    get: (key) =>
      atomically(() => {
        counts.gets += 1;
        return rowAt(key);
      }),
    query: (pk, skPrefix = "", skFrom = "") =>
      atomically(() => {
        counts.queries += 1;
        const matching = [...(partitions.get(pk) ?? [])].filter(
          ([sk]) => sk.startsWith(skPrefix) && sk >= skFrom,
        );
        return matching.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
      }),
    update: (...call) => atomically(() => updateNow(...call)),
    updateNow,
  };
}

/**
 * How DynamoDB counts a row: UTF-8 of names and strings; a number takes a byte for each two significant digits and
 * one more.
 */
export function rowBytes(row: StoredRow): number {
  const columns = Object.entries(row).map(([name, value]) => Buffer.byteLength(name) + scalarBytes(value));
  return columns.reduce((sum, bytes) => sum + bytes, 0);
}

function scalarBytes(value: Scalar): number {
  if (typeof value === "string") return Buffer.byteLength(value);
  if (typeof value === "boolean") return 1;
  if (typeof value === "object") return value.length;
  const digits = String(Math.abs(value))
    .replace(".", "")
    .replace(/^0+|0+$/g, "");
  return Math.ceil(digits.length / 2) + 1;
}
