/**
 * Whose sandbox is it: a random `pool_id`, written once into the table.
 *
 * It is in every sandbox's metadata and in every list's filter, so that two deployments on one provider's key never
 * see, and never kill, each other's sandboxes. Whoever comes first writes it; the others read what the first wrote.
 */
import { Fault } from "../rewards/faults.ts";
import type { RowKey, Table } from "./ports.ts";
import { expressionOver, poolPartition } from "./slot-row.ts";

export const identityKey: RowKey = { pk: poolPartition, sk: "I" };
const columns = { poolId: "id" };

const nobodyNamedIt = "attribute_not_exists(#poolId)";

export const nameExpression = expressionOver(columns, {
  name: "name the pool",
  update: "SET #poolId = :poolId",
  clauses: [nobodyNamedIt],
});

/** The pool's id; names the pool if nobody has. */
export async function readPoolId(table: Table, newPoolId: () => string): Promise<string> {
  const known = await table.get(identityKey);
  if (known !== undefined) return idOf(known);
  await table.update(identityKey, nameExpression, { ":poolId": newPoolId() });
  // Whoever won, the row says; the write's own answer says no more.
  return idOf(await table.get(identityKey));
}

/** Reads the pool's id at the first call that succeeds, and remembers it. */
export function rememberPoolId(table: Table, newPoolId: () => string): () => Promise<string> {
  let known: Promise<string> | null = null;
  return () => {
    known ??= readPoolId(table, newPoolId).catch((error: unknown) => {
      known = null;
      throw error;
    });
    return known;
  };
}

function idOf(row: Readonly<Record<string, unknown>> | undefined): string {
  const id = row?.[columns.poolId];
  if (typeof id === "string" && id !== "") return id;
  throw new Fault("misconfigured", "the table's row of the pool's id is unreadable");
}
