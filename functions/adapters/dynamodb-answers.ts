/**
 * Whether an answer of DynamoDB is the one to our question: on the way, answers may be mixed up.
 *
 * A row says whose it is by its key, and the row after an update shows what the update has set, which for every write
 * that takes something is a nonce of its own. What has no content can't be told from another of its kind: that there is
 * no such row, and that a condition does not hold. Whoever relies on these writes under a condition, too.
 */
import type { RowKey, Scalar, StoredRow, UpdateExpression } from "../pool/ports.ts";
import { Fault } from "../rewards/faults.ts";

/** Throws `store_unavailable` on the row of another key. */
export function checkRow(row: StoredRow, { pk, sk }: RowKey): StoredRow {
  if (row.pk !== pk || row.sk !== sk) throw anotherAnswer();
  return row;
}

/** Throws `store_unavailable` on a row that is not the one that this update leaves. */
export function checkUpdated(
  row: StoredRow,
  key: RowKey,
  { update, columns }: UpdateExpression,
  values: Readonly<Record<string, Scalar>>,
): StoredRow {
  checkRow(row, key);
  for (const [, column = "", value = ""] of update.matchAll(assignments)) {
    if (!isSame(row[columns[column] ?? ""], values[value])) throw anotherAnswer();
  }
  return row;
}

/** `#column = :value`, and not the beginning of a sum. */
const assignments = /(#\w+) = (:\w+)(?=\s*(?:,|$|REMOVE\b|ADD\b))/g;

/** Throws `store_unavailable` unless these can be all rows of the partition with that prefix, each once. */
export function checkRows(
  rows: readonly StoredRow[],
  { pk, skPrefix, skFrom }: { readonly pk: string; readonly skPrefix: string; readonly skFrom: string },
): void {
  const seen = new Set<Scalar | undefined>();
  for (const row of rows) {
    const { sk } = row;
    const isAsked = row.pk === pk && typeof sk === "string" && sk.startsWith(skPrefix) && sk >= skFrom;
    if (!isAsked || seen.has(row.sk)) throw anotherAnswer();
    seen.add(row.sk);
  }
}

export function anotherAnswer(): Fault {
  return new Fault("store_unavailable", "DynamoDB's answer is to another question");
}

function isSame(found: Scalar | undefined, set: Scalar | undefined): boolean {
  if (found instanceof Uint8Array && set instanceof Uint8Array) return Buffer.compare(found, set) === 0;
  return found === set;
}
