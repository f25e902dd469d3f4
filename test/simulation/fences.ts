/** What holds of every write to a slot: its fence never falls, and grows whenever the right to the slot changes hands. */
import type { StoredRow } from "../../functions/pool/ports.ts";
import { slotColumns } from "../../functions/pool/slot-row.ts";

const takings = new Set([
  "claim",
  "acquire",
  "take over",
  "hand over",
  "revoke",
  "drain",
  "expire",
  "abandon",
]);

/** What is wrong with the write, if anything is. */
export function fenceViolation(
  verb: string,
  before: StoredRow | undefined,
  after: StoredRow,
): "a fence fell" | "taken without a new fence" | null {
  const was = Number(before?.[slotColumns.fence] ?? 0);
  const is = Number(after[slotColumns.fence]);
  if (is < was) return "a fence fell";
  return takings.has(verb) && is <= was ? "taken without a new fence" : null;
}
