/** What the functions of a deployment find around them: a table, E2B, and the variables that say so. */
import { createDynamoDbClient } from "../../../functions/adapters/dynamodb-client.ts";
import { ensureTable } from "../../../functions/adapters/dynamodb-setup.ts";
import { createDynamoDbTable } from "../../../functions/adapters/dynamodb-table.ts";
import { systemClock } from "../../../functions/adapters/system-clock.ts";
import { localDynamoDbAccess, startDynamoDb } from "../../../functions/local/dynamodb.ts";
import { startE2bServer } from "../../../functions/local/e2b/server.ts";
import type { Table } from "../../../functions/pool/ports.ts";
import { poolPartition, readSlotRow, type SlotRow } from "../../../functions/pool/slot-row.ts";

export interface World {
  /** For any of the functions. */
  readonly environment: Readonly<Record<string, string>>;
  readonly apiKey: string;
  readonly e2b: { readonly apiKey: string; readonly apiUrl: string; readonly sandboxUrl: string };
  readonly table: Table;
  /** The pool's slots, as the table has them. */
  slots(): Promise<SlotRow[]>;
  /** Sandboxes that there are. */
  sandboxes(): number;
  /** What the stand-ins said. */
  said(): readonly string[];
  close(): Promise<void>;
}

export async function startWorld(options: { readonly slots: number }): Promise<World> {
  const said: string[] = [];
  const apiKey = "key-9f4c1b7e2d";
  const e2bKey = "e2b_0123456789abcdef0123456789abcdef01234567";
  const dynamoDb = await startDynamoDb({ port: 0 });
  const server = await startE2bServer({
    apiKey: e2bKey,
    plan: { basis: "hobby", concurrentSandboxes: options.slots + 1 },
    log: (line) => said.push(line),
  });
  const client = createDynamoDbClient({ ...localDynamoDbAccess, endpoint: dynamoDb.endpoint });
  const tableName = "code-rewards-test";
  await ensureTable(client, tableName, systemClock);
  const e2b = { apiKey: e2bKey, apiUrl: server.apiUrl, sandboxUrl: server.sandboxUrl };
  const table = createDynamoDbTable(client, tableName);
  return {
    environment: {
      CODE_REWARDS_API_KEYS: apiKey,
      CODE_REWARDS_TABLE: tableName,
      CODE_REWARDS_SLOTS: String(options.slots),
      CODE_REWARDS_SUPERVISOR_FOLDER: "supervisor",
      E2B_API_KEY: e2b.apiKey,
      E2B_API_URL: e2b.apiUrl,
      E2B_SANDBOX_URL: e2b.sandboxUrl,
      DYNAMODB_ENDPOINT: dynamoDb.endpoint,
      POWERTOOLS_SERVICE_NAME: "code-rewards-test",
    },
    apiKey,
    e2b,
    table,
    slots: async () => (await table.query(poolPartition)).flatMap((row) => readSlotRow(row) ?? []),
    sandboxes: () => server.sandboxCounts().running + server.sandboxCounts().paused,
    said: () => said,
    async close() {
      await server.close();
      client.destroy();
      await dynamoDb.close();
    },
  };
}
