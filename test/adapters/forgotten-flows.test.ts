/** Connections to E2B and to the table that a network has forgotten while nobody used them. */
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { createDynamoDbClient } from "../../functions/adapters/dynamodb-client.ts";
import { ensureTable } from "../../functions/adapters/dynamodb-setup.ts";
import { createDynamoDbTable } from "../../functions/adapters/dynamodb-table.ts";
import { createE2bClient, findSandbox } from "../../functions/adapters/e2b-client.ts";
import { resolveE2bOptions } from "../../functions/adapters/e2b-options.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import { type LocalDynamoDb, localDynamoDbAccess, startDynamoDb } from "../../functions/local/dynamodb.ts";
import { identityKey } from "../../functions/pool/identity.ts";
import { openWay, type Way } from "../faults/way.ts";
import { optionsFor, startRoomyServer, type TestServer } from "./cloud.ts";

let server: TestServer;
let dynamoDb: LocalDynamoDb;
const ways: Way[] = [];

beforeAll(async () => {
  server = await startRoomyServer();
  dynamoDb = await startDynamoDb({ port: 0 });
});
afterEach(() => vi.restoreAllMocks());
afterAll(async () => {
  for (const way of ways) way.close();
  await Promise.all([server?.stop(), dynamoDb?.close()]);
});

async function wayTo(url: string): Promise<Way> {
  const way = await openWay(url);
  ways.push(way);
  return way;
}

/** All flows are forgotten, and it is a minute later, though no timer has noticed, as after a freeze. */
function freeze(way: Way): void {
  way.forget();
  const laterMs = Date.now() + 60_000;
  vi.spyOn(Date, "now").mockReturnValue(laterMs);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await work();
  return performance.now() - startedAtMs;
}

it("E2B is asked on new ones, not on those", async () => {
  const way = await wayTo(server.target.apiUrl);
  const client = createE2bClient(resolveE2bOptions(optionsFor(server, { apiUrl: way.url })));
  const ask = async () => expect(await findSandbox(client, "nobody")).toEqual({ kind: "gone" });
  await Promise.all([ask(), ask(), ask()]);
  const before = way.connections();
  await ask();
  expect(way.connections()).toBe(before); // they are kept for a while
  freeze(way);
  expect(await timed(ask)).toBeLessThan(5_000);
  expect(way.connections()).toBe(before + 1);
});

it("the table is asked on new ones, not on those", async () => {
  const way = await wayTo(dynamoDb.endpoint);
  const client = createDynamoDbClient({ ...localDynamoDbAccess, endpoint: way.url });
  await ensureTable(client, "pool", systemClock);
  const table = createDynamoDbTable(client, "pool");
  const ask = async () => expect(await table.get(identityKey)).toBeUndefined();
  await Promise.all([ask(), ask(), ask()]);
  const before = way.connections();
  await ask();
  expect(way.connections()).toBe(before);
  freeze(way);
  expect(await timed(ask)).toBeLessThan(1_000); // less than one try's limit
  expect(way.connections()).toBe(before + 1);
  client.destroy();
});
