/**
 * A recorded answer in parts: an item of DynamoDB may have 400 KB, an answer has more.
 *
 * The first part is in the record itself, so that an ordinary answer is one write. The others have rows of their own,
 * each in a partition of its own: one partition takes 1,000 KB a second, and the answer may be of several thousand.
 */
import { createHash } from "node:crypto";
import { Fault } from "../../rewards/faults.ts";
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

/** Ties an answer to its batch and to the attempt that found it, which a body belongs to. */
export function sealAnswer(
  { batchId, fence }: Pick<BatchClaim, "batchId" | "fence">,
  answer: Uint8Array,
): string {
  const digest = createHash("sha256").update(`${batchId}\n${fence}\n`).update(answer).digest("base64url");
  return `${fence}.${digest}`;
}

/**
 * The whole answer of an answered batch. Throws the table's faults; a part that is not there, or an answer that breaks
 * its seal, is one too.
 */
export async function readAnswer(
  { table }: RecordContext,
  batchId: string,
  { fence, firstPart, moreParts, seal }: BatchRecord,
): Promise<Uint8Array> {
  const reads = Array.from({ length: moreParts }, (_, at) => table.get(partKey({ batchId, fence }, at + 1)));
  const rest = (await Promise.all(reads)).map((row) => row?.[writePartExpression.columns["#bytes"] ?? ""]);
  const parts = [firstPart, ...rest].map((part, at) => {
    if (part instanceof Uint8Array) return part;
    throw unreadable(`part ${at} of it is not there`);
  });
  const [first] = parts;
  const whole = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
  const isSealed = seal?.startsWith(`${fence}.`) ?? false;
  if (isSealed && seal !== sealAnswer({ batchId, fence }, whole))
    throw unreadable("it is not what was recorded");
  return whole;
}

function unreadable(why: string): Fault {
  return new Fault("store_unavailable", `The batch was answered, but its answer can't be read now: ${why}.`);
}
