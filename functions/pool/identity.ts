/**
 * Whose sandbox is it: a random `pool_id`, written once into the table.
 *
 * It is in every sandbox's metadata and in every list's filter, so that two deployments on one provider's key never
 * see, and never kill, each other's sandboxes. Whoever comes first writes it; the others read what the first wrote.
 *
 * It also shows whether the pool's rows were read: they are never without it once it is written. Without that, the answer
 * to somebody else's query that found nothing would make all sandboxes those of no slot.
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

export interface NamedPool<PoolTable extends Table> {
  readonly table: PoolTable;
  readonly poolId: () => Promise<string>;
}

/** A pool's id, and its table; that throws `store_unavailable` rather than read a pool whose id it knows without it. */
export function namePool<PoolTable extends Table>(
  table: PoolTable,
  newPoolId: () => string,
): NamedPool<PoolTable> {
  const read = rememberPoolId(table, newPoolId);
  let isNamed = false;
  return {
    async poolId() {
      const id = await read();
      isNamed = true;
      return id;
    },
    table: {
      ...table,
      async query(...range) {
        const rows = await table.query(...range);
        const [pk, skPrefix] = range;
        const isPool = pk === identityKey.pk && identityKey.sk.startsWith(skPrefix ?? "");
        if (isNamed && isPool && !rows.some(({ sk }) => sk === identityKey.sk))
          throw new Fault(
            "store_unavailable",
            "the table's answer is none of this pool: its id is not in it",
          );
        return rows;
      },
    },
  };
}

function idOf(row: Readonly<Record<string, unknown>> | undefined): string {
  const id = row?.[columns.poolId];
  if (typeof id === "string" && id !== "") return id;
  throw new Fault("misconfigured", "the table's row of the pool's id is unreadable");
}
