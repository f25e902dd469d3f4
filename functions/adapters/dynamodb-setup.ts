/** Creates the table where no infrastructure code does it: emulators and the embedded default. */
import {
  CreateTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import type { Clock } from "../rewards/ports.ts";
import { faultOf } from "./dynamodb-faults.ts";

/** The column by which DynamoDB may delete rows, in seconds since 1970. Nothing relies on it being done. */
export const ttlColumn = "expiresAtS";

/** Creates the table unless it exists, and waits until it can be used (30 s at most). Throws as the table does. */
export async function ensureTable(
  client: DynamoDBClient,
  tableName: string,
  clock: Pick<Clock, "sleep">,
): Promise<void> {
  try {
    await createTable(client, tableName);
    await waitUntilActive(client, tableName, clock);
    await enableTtl(client, tableName);
  } catch (error) {
    throw faultOf(error, tableName);
  }
}

async function createTable(client: DynamoDBClient, tableName: string): Promise<void> {
  try {
    await client.send(
      new CreateTableCommand({
        TableName: tableName,
        BillingMode: "PAY_PER_REQUEST",
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          { AttributeName: "sk", KeyType: "RANGE" },
        ],
        AttributeDefinitions: [
          { AttributeName: "pk", AttributeType: "S" },
          { AttributeName: "sk", AttributeType: "S" },
        ],
      }),
    );
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error;
  }
}

async function waitUntilActive(client: DynamoDBClient, tableName: string, clock: Pick<Clock, "sleep">) {
  for (let tries = 0; tries < 600; tries += 1) {
    const { Table: table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
    if (table?.TableStatus === "ACTIVE") return;
    await clock.sleep(50);
  }
  throw new Error(`table ${tableName} did not become active`);
}

async function enableTtl(client: DynamoDBClient, tableName: string): Promise<void> {
  try {
    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: tableName,
        TimeToLiveSpecification: { AttributeName: ttlColumn, Enabled: true },
      }),
    );
  } catch (error) {
    if (!isTolerable(error)) throw error;
  }
}

/** The embedded emulator does not know the call; AWS refuses to enable it a second time. */
function isTolerable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error.name.startsWith("UnknownOperation")) return true;
  return error.name === "ValidationException" && /already enabled/i.test(error.message);
}
