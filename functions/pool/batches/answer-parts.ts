/**
 * A recorded answer in parts: an item of DynamoDB may have 400 KB, an answer has more.
 *
 * The first part is in the record itself, so that an ordinary answer is one write. The others have rows of their own,
 * each in a partition of its own: one partition takes 1,000 KB a second, and the answer may be of several thousand.
 */
import type { RowKey } from "../ports.ts";
import { expressionOver } from "../slot-row.ts";
import { writeRow } from "../slots/write.ts";
import type { BatchClaim, BatchRecord, RecordContext } from "./batch-record.ts";

/**
 * Longest answer that is recorded, as it is stored. Of 10,000 samples with three verdicts each it has about 400 KB; a
 * longer one is some 100,000 verdicts, or outputs that can't be compressed.
 */
export const answerLimitBytes = 4 * 1024 * 1024;
/** Well below what an item may have, names and keys included. */
export const partBytes = 256 * 1024;
/** Parts outlive the record that counts them, also where clocks differ. */
const outliveRecordS = 600;

export const writePartExpression = expressionOver(
  { bytes: "a", recordUntilS: "expiresAtS" },
  { name: "write answer part", update: "SET #bytes = :bytes, #recordUntilS = :recordUntilS", clauses: [] },
);

/** The pieces of an answer, in order; views of it, no copies. */
export function cutAnswer(answer: Uint8Array): Uint8Array[] {
  const count = Math.max(1, Math.ceil(answer.length / partBytes));
  return Array.from({ length: count }, (_, at) => answer.subarray(at * partBytes, (at + 1) * partBytes));
}

function partKey({ batchId, fence }: Pick<BatchClaim, "batchId" | "fence">, at: number): RowKey {
  return { pk: `B#${batchId}#${fence}#${at}`, sk: "P" };
}

/** Writes all parts but the first, one after another; may be repeated. Throws the table's faults. */
export async function writeMoreParts(
  { table }: RecordContext,
  claim: BatchClaim,
  parts: readonly Uint8Array[],
  recordUntilS: number,
): Promise<void> {
  for (const [at, bytes] of parts.entries()) {
    if (at === 0) continue;
    const values = { ":bytes": bytes, ":recordUntilS": recordUntilS + outliveRecordS };
    await writeRow(table, partKey(claim, at), writePartExpression, values, () => true);
  }
}

/** The whole answer of an answered batch. Throws the table's faults, and an error when a part is not there. */
export async function readAnswer(
  { table }: RecordContext,
  batchId: string,
  { fence, firstPart, moreParts }: BatchRecord,
): Promise<Uint8Array> {
  const reads = Array.from({ length: moreParts }, (_, at) => table.get(partKey({ batchId, fence }, at + 1)));
  const rest = (await Promise.all(reads)).map((row) => row?.[writePartExpression.columns["#bytes"] ?? ""]);
  const parts = [firstPart, ...rest].map((part, at) => {
    if (part instanceof Uint8Array) return part;
    throw new Error(`part ${at} of a recorded answer is not there`);
  });
  const [whole] = parts;
  return parts.length === 1 && whole !== undefined ? whole : Buffer.concat(parts);
}
