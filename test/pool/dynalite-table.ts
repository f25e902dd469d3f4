/** Tables of one dynalite, for suites. */
import { createDynamoDbClient, type DynamoDbOptions } from "../../functions/adapters/dynamodb-client.ts";
import { ensureTable } from "../../functions/adapters/dynamodb-setup.ts";
import { createDynamoDbTable } from "../../functions/adapters/dynamodb-table.ts";
import { localDynamoDbAccess, startDynamoDb } from "../../functions/local/dynamodb.ts";

/** All rivals of a test wait in one queue of one busy process here: how long is no question of the protocol. */
const patient: DynamoDbOptions = { maxSockets: 200, requestTimeoutMs: 20_000, connectionTimeoutMs: 20_000 };

export const noSleep = { sleep: async () => {} };

export async function openDynalite() {
  const database = await startDynamoDb({ port: 0 });
  const client = createDynamoDbClient({ endpoint: database.endpoint, ...localDynamoDbAccess, ...patient });
  let tables = 0;
  return {
    endpoint: database.endpoint,
    client,
    async fresh() {
      tables += 1;
      const name = `table-${tables}`;
      await ensureTable(client, name, noSleep);
      return createDynamoDbTable(client, name);
    },
    async close() {
      client.destroy();
      await database.close();
    },
  };
}
