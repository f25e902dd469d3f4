/** What the pool relies on of a table: the expression language, and what comes back. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Scalar, StoredRow, Table } from "../../functions/pool/ports.ts";
import type { OpenTable } from "./test-pool.ts";

const key = { pk: "p", sk: "s" };

type Columns = Readonly<Record<string, Scalar>>;

/** Every `#word` stands for the column of that name. */
function expression(update: string, condition?: string) {
  const words = `${update} ${condition ?? ""}`.match(/#\w+/g) ?? [];
  const columns = Object.fromEntries(words.map((word) => [word, word.slice(1)]));
  return { name: "test", update, clauses: condition === undefined ? [] : [condition], columns };
}

/** Writes exactly these columns into an absent row. */
async function put(table: Table, columns: Columns): Promise<void> {
  const names = Object.keys(columns);
  if (names.length === 0) return;
  const update = `SET ${names.map((name) => `#${name} = :${name}`).join(", ")}`;
  const values = Object.fromEntries(names.map((name) => [`:${name}`, columns[name] ?? ""]));
  await table.update(key, expression(update), values);
}

export function describeTable(name: string, open: () => Promise<OpenTable>): void {
  describe(name, () => {
    let opened: OpenTable;

    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());

    async function tableWith(columns: Columns): Promise<Table> {
      const table = await opened.fresh();
      await put(table, columns);
      return table;
    }

    const conditions: [string, Columns, Record<string, Scalar>, boolean][] = [
      ["attribute_exists(#a)", { a: 0 }, {}, true],
      ["attribute_exists(#a)", { b: 0 }, {}, false],
      ["attribute_not_exists(#a)", {}, {}, true],
      ["attribute_not_exists(#a)", { a: false }, {}, false],
      ["#a = :v", { a: "x" }, { ":v": "x" }, true],
      ["#a = :v", { a: 1 }, { ":v": "1" }, false],
      ["#a = :v", {}, { ":v": 1 }, false],
      ["#a <> :v", { a: 1 }, { ":v": 1 }, false],
      ["#a <> :v", {}, { ":v": 1 }, true],
      ["#a <> :v", { a: 1 }, { ":v": "1" }, true],
      ["#a < :v", { a: 1 }, { ":v": 2 }, true],
      ["#a < :v", { a: 2 }, { ":v": 2 }, false],
      ["#a < :v", {}, { ":v": 2 }, false],
      ["#a < :v", { a: "1" }, { ":v": 2 }, false],
      ["#a < :v", { a: 9 }, { ":v": 10 }, true],
      ["#a < :v", { a: "9" }, { ":v": "10" }, false],
      ["#a <= :v", { a: 2 }, { ":v": 2 }, true],
      ["#a > :v", { a: 3 }, { ":v": 2 }, true],
      ["#a > :v", {}, { ":v": 2 }, false],
      ["#a >= :v", { a: 1_800_000_000_001 }, { ":v": 1_800_000_000_000 }, true],
      ["#a < #b", { a: 1, b: 2 }, {}, true],
      ["#a < #b", { a: 1 }, {}, false],
      ["#a IN (:v, :w)", { a: 2 }, { ":v": 1, ":w": 2 }, true],
      ["#a IN (:v, :w)", { a: 3 }, { ":v": 1, ":w": 2 }, false],
      ["#a IN (:v, :w)", {}, { ":v": 1, ":w": 2 }, false],
      ["NOT #a = :v", {}, { ":v": 1 }, true],
      ["NOT #a = :v", { a: 1 }, { ":v": 1 }, false],
      ["NOT #a = :v AND #b = :v", { a: 2, b: 1 }, { ":v": 1 }, true],
      ["#a = :v OR #b = :v AND #c = :v", { a: 1 }, { ":v": 1 }, true],
      ["(#a = :v OR #b = :v) AND #c = :v", { a: 1 }, { ":v": 1 }, false],
      ["(#a = :v OR #b = :v) AND #c = :v", { b: 1, c: 1 }, { ":v": 1 }, true],
    ];

    it.each(conditions)("decides %s of %o and %o: %s", async (condition, columns, values, holds) => {
      const table = await tableWith(columns);
      const outcome = await table.update(key, expression("SET #z = :z", condition), { ...values, ":z": 1 });
      expect(outcome.kind).toBe(holds ? "applied" : "refused");
      const row = await table.get(key);
      expect(row?.z).toBe(holds ? 1 : undefined);
    });

    const updates: [string, Columns, Record<string, Scalar>, Columns][] = [
      ["SET #a = :v", {}, { ":v": "x" }, { a: "x" }],
      ["SET #a = :v, #b = #a", { a: 1 }, { ":v": 2 }, { a: 2, b: 1 }],
      ["SET #a = #a + :v", { a: 1 }, { ":v": 2 }, { a: 3 }],
      ["SET #a = #a - :v", { a: 1 }, { ":v": 2 }, { a: -1 }],
      ["SET #a = if_not_exists(#a, :v)", { a: 1 }, { ":v": 2 }, { a: 1 }],
      ["SET #a = if_not_exists(#b, :v) + :w ADD #b :w", {}, { ":v": 0, ":w": 1 }, { a: 1, b: 1 }],
      ["SET #a = if_not_exists(#b, :v) + :w ADD #b :w", { b: 7 }, { ":v": 0, ":w": 1 }, { a: 8, b: 8 }],
      ["ADD #a :v", {}, { ":v": 2 }, { a: 2 }],
      ["ADD #a :v", { a: 0.5 }, { ":v": 0.25 }, { a: 0.75 }],
      ["REMOVE #a, #b", { a: 1, c: 3 }, {}, { c: 3 }],
      ["SET #a = :v REMOVE #b ADD #c :w", { b: 1 }, { ":v": true, ":w": 1 }, { a: true, c: 1 }],
      ["SET #a = :v", {}, { ":v": new Uint8Array([0, 255, 128]) }, { a: new Uint8Array([0, 255, 128]) }],
      ["SET #a = :v", {}, { ":v": "☃ \u0000 \u{1f600}" }, { a: "☃ \u0000 \u{1f600}" }],
    ];

    it.each(updates)("does %s to %o with %o", async (update, columns, values, after) => {
      const table = await tableWith(columns);
      const outcome = await table.update(key, expression(update), values);
      const row: StoredRow = { ...key, ...after };
      expect(outcome).toEqual({ kind: "applied", row });
      expect(await table.get(key)).toEqual(row);
    });

    it.each([
      ["a value that is not given", "SET #a = :v", undefined, {}],
      ["a value that is not used", "SET #a = :v", undefined, { ":v": 1, ":w": 1 }],
      ["one column twice", "SET #a = :v REMOVE #a", undefined, { ":v": 1 }],
      ["a section twice", "SET #a = :v SET #b = :v", undefined, { ":v": 1 }],
      ["an operand that is not there", "SET #a = #b", undefined, {}],
      ["adding to a text", "ADD #t :v", undefined, { ":v": 1 }],
      ["an unbalanced condition", "SET #a = :v", "(#a = :v", { ":v": 1 }],
      ["an empty condition", "SET #a = :v", "", { ":v": 1 }],
    ])("refuses as a mistake: %s", async (_, update, condition, values) => {
      const table = await tableWith({ t: "text" });
      const spoken = expression(update, condition);
      await expect(table.update(key, spoken, values)).rejects.toMatchObject({ name: "ValidationException" });
      expect(await table.get(key)).toEqual({ ...key, t: "text" });
    });

    it("applies concurrent changes one after the other", async () => {
      const table = await tableWith({});
      const add = expression("ADD #a :one");
      await Promise.all(Array.from({ length: 40 }, () => table.update(key, add, { ":one": 1 })));
      expect(await table.get(key)).toEqual({ ...key, a: 40 });
    });

    it("reads a partition in the order of its keys, whole or by prefix", async () => {
      const table = await opened.fresh();
      for (const sk of ["b#2", "a", "b#10", "b"]) {
        await table.update({ pk: "p", sk }, expression("SET #a = :v"), { ":v": sk });
      }
      await table.update({ pk: "other", sk: "b#3" }, expression("SET #a = :v"), { ":v": "" });
      expect((await table.query("p")).map(({ sk }) => sk)).toEqual(["a", "b", "b#10", "b#2"]);
      expect((await table.query("p", "b#")).map(({ a }) => a)).toEqual(["b#10", "b#2"]);
      expect(await table.query("p", "c")).toEqual([]);
      expect((await table.query("p", "", "b#")).map(({ a }) => a)).toEqual(["b#10", "b#2"]);
      expect((await table.query("p", "", "b")).map(({ a }) => a)).toEqual(["b", "b#10", "b#2"]);
      expect(await table.query("p", "", "c")).toEqual([]);
    });
  });
}
