/** On the way, DynamoDB's answers are mixed up: one to another question is none. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createDynamoDbClient } from "../../functions/adapters/dynamodb-client.ts";
import { createDynamoDbTable } from "../../functions/adapters/dynamodb-table.ts";
import { localDynamoDbAccess } from "../../functions/local/dynamodb.ts";
import type { Scalar, Table } from "../../functions/pool/ports.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import { openDynalite } from "./dynalite-table.ts";
import { anna, ben, present, readied, testHandler } from "./test-pool.ts";

let dynalite: Awaited<ReturnType<typeof openDynalite>>;
let proxy: FaultProxy;
let client: ReturnType<typeof createDynamoDbClient>;
let table: Table;

beforeAll(async () => {
  dynalite = await openDynalite();
  proxy = await startFaultProxy({ table: dynalite.endpoint });
  client = createDynamoDbClient({ endpoint: proxy.tableUrl, ...localDynamoDbAccess });
});
let tables = 0;
beforeEach(async () => {
  await dynalite.fresh();
  table = createDynamoDbTable(client, `table-${++tables}`);
});
afterEach(() => proxy.clear());
afterAll(async () => {
  client.destroy();
  await proxy.close();
  await dynalite.close();
});

const unavailable = { name: "Fault", code: "store_unavailable", retryable: true };
const key = { pk: "p", sk: "s" };
const set = (value: Scalar, at = key) =>
  table.update(
    at,
    { name: "set", update: "SET #a = :a", clauses: [], columns: { "#a": "a" } },
    { ":a": value },
  );

/** What was answered last; given to whatever is asked next. */
function repeatLastAnswer(body = proxy.requests.at(-1)?.answer ?? ""): void {
  proxy.add({ path: "table", match: { nth: 1 }, fault: { kind: "answer", status: 200, body } });
}

describe("the answer to a read of one row is not", () => {
  it.each([
    ["another partition's", { pk: "q", sk: "s" }],
    ["another row's", { pk: "p", sk: "t" }],
  ])("%s", async (_, other) => {
    await set(1);
    await set(2, other);
    await table.get(other);
    repeatLastAnswer();
    await expect(table.get(key)).rejects.toMatchObject(unavailable);
    expect(await table.get(key)).toMatchObject({ a: 1 });
  });
});

describe("the answer to a write is not", () => {
  it("that to the write of another row", async () => {
    await set(1, { pk: "p", sk: "t" });
    repeatLastAnswer();
    await expect(set(1)).rejects.toMatchObject(unavailable);
    expect(await table.get(key)).toBeUndefined();
  });

  it.each<[string, Scalar, Scalar]>([
    ["text", "one", "two"],
    ["a number", 1, 2],
    ["a boolean", true, false],
    ["bytes", new Uint8Array([1, 2]), new Uint8Array([1, 3])],
  ])("that to an earlier write of the same row, of %s", async (_, first, second) => {
    await set(first);
    repeatLastAnswer();
    await expect(set(second)).rejects.toMatchObject(unavailable);
    expect(await set(second)).toMatchObject({ kind: "applied", row: { a: second } });
  });

  it("one without a row, as a read gets that finds none", async () => {
    await table.get(key);
    repeatLastAnswer();
    await expect(set(1)).rejects.toMatchObject(unavailable);
  });

  it.each([
    "SET #a = :v, #b = :w",
    "SET #b = :w, #a = :v REMOVE #c",
    "SET #a = :v ADD #b :w",
    "REMOVE #c SET #a = :v ADD #b :w",
    "SET #b = if_not_exists(#b, :w) + :w, #a = :v",
    "SET #a = :v, #b = :v + :w",
  ])("an earlier one's, wherever it sets what: %s", async (update) => {
    const columns = Object.fromEntries(
      [...update.matchAll(/#(\w)/g)].map(([word, name]) => [word, `${name}`]),
    );
    const write = (value: number) =>
      table.update(key, { name: "set", update, clauses: [], columns }, { ":v": value, ":w": 1 });
    expect(await write(1)).toMatchObject({ kind: "applied", row: { a: 1 } });
    repeatLastAnswer();
    await expect(write(2)).rejects.toMatchObject(unavailable);
    expect(await write(3)).toMatchObject({ kind: "applied", row: { a: 3 } });
  });

  it("another's who wanted the same worker: two never hold it", async () => {
    const handler = testHandler(table);
    await readied(handler, 0);
    present(await acquireSlot(handler, 0, anna));
    repeatLastAnswer();
    await expect(acquireSlot(handler, 0, ben)).rejects.toMatchObject(unavailable);
    expect(await acquireSlot(handler, 0, ben)).toBeNull();
  });
});

describe("the answer to a query is not", () => {
  it.each<[string, [string, string?]]>([
    ["another partition's", ["q"]],
    ["that of other rows", ["p", "t"]],
  ])("%s", async (_, other) => {
    await set(1);
    await set(2, { pk: "p", sk: "t" });
    await set(3, { pk: "q", sk: "s" });
    await table.query(...other);
    repeatLastAnswer();
    await expect(table.query("p", "s")).rejects.toMatchObject(unavailable);
    expect(await table.query("p", "s")).toMatchObject([{ a: 1 }]);
  });

  it("that to a read which found nothing", async () => {
    await table.get(key);
    repeatLastAnswer();
    await expect(table.query("p")).rejects.toMatchObject(unavailable);
  });

  it("a page that was there before", async () => {
    for (const sk of ["0", "1", "2", "3"]) await set("x".repeat(390_000), { pk: "p", sk });
    proxy.add({
      path: "table",
      match: { operation: "Query", nth: 2 },
      fault: () => ({ kind: "answer", status: 200, body: proxy.requests.at(-2)?.answer ?? "" }),
    });
    await expect(table.query("p")).rejects.toMatchObject(unavailable);
    expect(await table.query("p")).toHaveLength(4);
  });
});
