import { createDynamoDbClient } from "../../functions/adapters/dynamodb-client.ts";
import { ensureTable } from "../../functions/adapters/dynamodb-setup.ts";
import { createDynamoDbTable } from "../../functions/adapters/dynamodb-table.ts";
import { localDynamoDbAccess, startDynamoDb } from "../../functions/local/dynamodb.ts";
import { describeSlotStore } from "./slot-store-contract.ts";

describeSlotStore("slots over DynamoDB's protocol", async () => {
  const database = await startDynamoDb({ port: 0 });
  const client = createDynamoDbClient({
    endpoint: database.endpoint,
    ...localDynamoDbAccess,
    // All 200 rivals wait in one queue of one busy process here; how long is no question of the protocol.
    maxSockets: 200,
    requestTimeoutMs: 20_000,
    connectionTimeoutMs: 20_000,
  });
  let tables = 0;
  return {
    async fresh() {
      tables += 1;
      const name = `slots-${tables}`;
      await ensureTable(client, name, { sleep: async () => {} });
      return createDynamoDbTable(client, name);
    },
    async close() {
      client.destroy();
      await database.close();
    },
  };
});
