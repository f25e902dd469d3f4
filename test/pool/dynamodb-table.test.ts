import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createDynamoDbClient, type DynamoDbOptions } from "../../functions/adapters/dynamodb-client.ts";
import { ensureTable } from "../../functions/adapters/dynamodb-setup.ts";
import { createDynamoDbTable } from "../../functions/adapters/dynamodb-table.ts";
import { localDynamoDbAccess, startDynamoDb } from "../../functions/local/dynamodb.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { releaseReady } from "../../functions/pool/slots/release.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import type { Match } from "../faults/proxy/rules.ts";
import { noSleep, openDynalite } from "./dynalite-table.ts";
import { anna, ben, present, readied, testHandler } from "./test-pool.ts";

const key = { pk: "p", sk: "s" };
const setA = { name: "set", update: "SET #a = :a", clauses: [], columns: { "#a": "a" } };

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

function tableAt(endpoint: string, options: DynamoDbOptions = {}, name = "table-1") {
  const client = createDynamoDbClient({ endpoint, ...localDynamoDbAccess, ...options });
  closers.push(() => client.destroy());
  return createDynamoDbTable(client, name);
}

/** A server that answers every request like this; none at all without a status. */
async function serverThat(status?: number, type?: string, headers = {}, message = "no"): Promise<string> {
  const server: Server = createServer((request, response) => {
    request.resume();
    if (status === undefined) return;
    response.writeHead(status, { "content-type": "application/x-amz-json-1.0", ...headers });
    response.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe("the adapter over a network that loses answers", () => {
  let dynalite: Awaited<ReturnType<typeof openDynalite>>;
  let proxy: FaultProxy;

  beforeAll(async () => {
    dynalite = await openDynalite();
    await dynalite.fresh();
    proxy = await startFaultProxy({ table: dynalite.endpoint });
  });
  afterAll(async () => {
    await proxy.close();
    await dynalite.close();
  });
  afterEach(() => proxy.clear());

  const operations = () => proxy.requests.map(({ operation }) => operation);
  const loseAnswers = (match: Match = {}) => {
    proxy.clear();
    proxy.requests.length = 0;
    proxy.add({ path: "table", match, fault: { kind: "reset_after" } });
  };

  it("wins a worker although the answer was cut off, at the price of one read", async () => {
    const table = tableAt(proxy.tableUrl);
    const handler = testHandler(table);
    await readied(handler, 0);
    loseAnswers({ operation: "UpdateItem", nth: 1 });
    const lease = present(await acquireSlot(handler, 0, anna));
    expect(operations()).toEqual(["UpdateItem", "UpdateItem", "GetItem"]);
    expect(table.counts()).toMatchObject({ refusals: 1, gets: 1 });

    loseAnswers({ operation: "UpdateItem", nth: 1 });
    expect(await releaseReady(handler, lease)).toMatchObject({ state: "ready" });
  });

  it("does not look twice when the first attempt was refused", async () => {
    const handler = testHandler(tableAt(proxy.tableUrl));
    await readied(handler, 1);
    present(await acquireSlot(handler, 1, anna));
    proxy.requests.length = 0;
    expect(await acquireSlot(handler, 1, ben)).toBeNull();
    expect(operations()).toEqual(["UpdateItem"]);
  });

  it("gives up after three attempts, and does not know what became of the write", async () => {
    const table = tableAt(proxy.tableUrl);
    loseAnswers();
    await expect(table.update(key, setA, { ":a": 1 })).rejects.toMatchObject({
      code: "store_unavailable",
      retryable: true,
    });
    expect(operations()).toHaveLength(3);
    proxy.clear();
    expect(await table.get(key)).toMatchObject({ a: 1 });
  });
});

describe("the adapter's faults", () => {
  it.each([
    ["throttled", 400, "ProvisionedThroughputExceededException", "store_unavailable"],
    ["failed", 500, "InternalServerError", "store_unavailable"],
    ["the table does not exist", 400, "ResourceNotFoundException", "misconfigured"],
    ["the key is wrong", 400, "UnrecognizedClientException", "misconfigured"],
    ["the secret is wrong", 400, "InvalidSignatureException", "misconfigured"],
    ["the role may not", 400, "AccessDeniedException", "misconfigured"],
    ["the session is over", 400, "ExpiredTokenException", "store_unavailable"],
  ])("%s (%i %s) is %s", async (_, status, type, code) => {
    const table = tableAt(await serverThat(status, type));
    const fault = { name: "Fault", code, retryable: code === "store_unavailable" };
    await expect(table.get(key)).rejects.toMatchObject(fault);
  });

  it("a throttle that says when to ask again is obeyed: at first by the client, then by who asks", async () => {
    const table = tableAt(await serverThat(400, "ThrottlingException", { "Retry-After": "1" }));
    const startedAtMs = performance.now();
    await expect(table.get(key)).rejects.toMatchObject({
      code: "store_unavailable",
      retryAfterMs: 1_000,
      message: "DynamoDB refused the request: ThrottlingException",
    });
    expect(performance.now() - startedAtMs).toBeGreaterThan(2_000);
  });

  it.each([
    "The provided key element does not match the schema",
    "Query condition missed key schema element: pk",
  ])("a table of other keys (%s) is the wrong one", async (message) => {
    const table = tableAt(await serverThat(400, "ValidationException", {}, message));
    await expect(table.query("pool")).rejects.toMatchObject({
      code: "misconfigured",
      message: expect.stringContaining("Name the right table"),
    });
  });

  it("a server that never answers is given up soon", async () => {
    const table = tableAt(await serverThat(), { requestTimeoutMs: 60 });
    const startedAtMs = performance.now();
    await expect(table.get(key)).rejects.toMatchObject({ code: "store_unavailable" });
    expect(performance.now() - startedAtMs).toBeLessThan(3_000);
  });

  it("a port where nobody listens is named by its error", async () => {
    const table = tableAt("http://127.0.0.1:1");
    await expect(table.get(key)).rejects.toMatchObject({
      code: "store_unavailable",
      message: "DynamoDB did not answer: ECONNREFUSED",
    });
  });

  it("a mistake of ours stays what it is", async () => {
    const table = tableAt(await serverThat(400, "ValidationException"));
    await expect(table.get(key)).rejects.toMatchObject({ name: "ValidationException" });
    await expect(table.update(key, setA, { ":a": Number.NaN })).rejects.toThrow("NaN");
  });
});

describe("the embedded table", () => {
  it("reads partitions of more than one page whole", async () => {
    const dynalite = await openDynalite();
    closers.push(() => dynalite.close());
    const table = await dynalite.fresh();
    for (let part = 0; part < 5; part += 1) {
      await table.update({ pk: "p", sk: String(part) }, setA, { ":a": "x".repeat(390_000) });
    }
    expect((await table.query("p")).map(({ sk }) => sk)).toEqual(["0", "1", "2", "3", "4"]);
    expect(table.counts()).toMatchObject({ writes: 5, refusals: 0, gets: 0 });
    expect(table.counts().queries).toBeGreaterThan(1);
  });

  it("may be set up twice, and says when its port is taken", async () => {
    const dynalite = await openDynalite();
    closers.push(() => dynalite.close());
    await ensureTable(dynalite.client, "table-1", noSleep);
    await ensureTable(dynalite.client, "table-1", noSleep);
    const port = Number(new URL(dynalite.endpoint).port);
    await expect(startDynamoDb({ port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  });

  it("forgets everything when it is closed", async () => {
    const first = await startDynamoDb({ port: 0 });
    await first.close();
    const second = await startDynamoDb({ port: Number(new URL(first.endpoint).port) });
    closers.push(() => second.close());
    await expect(tableAt(second.endpoint).get(key)).rejects.toMatchObject({ code: "misconfigured" });
  });

  it("survives a client that goes away in the middle of a request", async () => {
    const dynalite = await openDynalite();
    closers.push(() => dynalite.close());
    const table = await dynalite.fresh();
    const socket = connect(Number(new URL(dynalite.endpoint).port), "127.0.0.1");
    await once(socket, "connect");
    socket.write("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{");
    socket.resetAndDestroy();
    await table.update(key, setA, { ":a": 1 });
    expect(await table.get(key)).toMatchObject({ a: 1 });
  });
});
