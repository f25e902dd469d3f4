/** Finding a deployment's table, for commands that are only told the stage. */
import { type DynamoDBClient, ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { faultOf } from "./dynamodb-faults.ts";

/** The names of all tables that begin so, in this account and region. Throws the table's faults. */
export async function findTables(client: DynamoDBClient, prefix: string): Promise<string[]> {
  const found: string[] = [];
  let after: string | undefined;
  do {
    const page = await listPage(client, prefix, after);
    const names = page.TableNames ?? [];
    found.push(...names.filter((name) => name.startsWith(prefix)));
    after = page.LastEvaluatedTableName;
  } while (after !== undefined);
  return found;
}

async function listPage(client: DynamoDBClient, prefix: string, after: string | undefined) {
  try {
    return await client.send(
      new ListTablesCommand(after === undefined ? {} : { ExclusiveStartTableName: after }),
    );
  } catch (error) {
    throw faultOf(error, `${prefix}…`);
  }
}
