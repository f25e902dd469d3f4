/** Which lives of slots somebody with a wrong clock has written to: what becomes of them then is no fault of the pool's. */
import type { StoredRow, Table } from "../../functions/pool/ports.ts";
import { slotColumns } from "../../functions/pool/slot-row.ts";
import type { SimulatedProcess } from "./process.ts";

export interface Taints {
  has(life: { readonly slot: number; readonly generation: number }): boolean;
  /** The same table; what the process writes by a wrong clock is noted. */
  watch(process: SimulatedProcess, table: Table): Table;
}

export function createTaints(slotRows: ReadonlyMap<string, StoredRow>): Taints {
  const lives = new Set<string>();
  const note = (row: StoredRow | undefined) => {
    if (row !== undefined)
      lives.add(`${Number(String(row.sk).slice(2))}/${row[slotColumns.generation] ?? 0}`);
  };
  return {
    has: ({ slot, generation }) => lives.size > 0 && lives.has(`${slot}/${generation}`),
    watch: (process, table) => ({
      ...table,
      async update(key, expression, values) {
        const isRight = process.isClockRight();
        const before = slotRows.get(key.sk);
        const outcome = await table.update(key, expression, values);
        if (isRight || outcome.kind === "refused" || !key.sk.startsWith("S#")) return outcome;
        note(before);
        note(outcome.row);
        return outcome;
      },
    }),
  };
}
