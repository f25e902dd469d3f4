/**
 * The pool's table in DynamoDB.
 *
 * Theory of operation. Each port call is one request (a query one per page): GetItem and Query with ConsistentRead,
 * UpdateItem with ALL_NEW. Nothing is used that an emulator of the embedded default lacks; in particular a refusal
 * does not carry the row, which is read back by whoever needs it.
 *
 * The client repeats a request that got no answer. If the first attempt was applied after all, the second one fails
 * its condition; the number of attempts, which the client reports also with an error, is passed on as `retried`, for
 * the caller to look twice. An update *without* a condition may for the same reason be applied twice: an ADD needs one.
 *
 * An answer that can't be the one to the call is none (`dynamodb-answers.ts`).
 */
import {
  type AttributeValue,
  ConditionalCheckFailedException,
  type DynamoDBClient,
  GetItemCommand,
  QueryCommand,
  UpdateItemCommand,
} from "@aws-sdk/client-dynamodb";
import type { RowKey, Scalar, StoredRow, Table, UpdateExpression, UpdateOutcome } from "../pool/ports.ts";
import { anotherAnswer, checkRow, checkRows, checkUpdated } from "./dynamodb-answers.ts";
import { faultOf } from "./dynamodb-faults.ts";

/** What calls did so far; failed conditions are writes too, and are billed like them. */
export interface TableCounts {
  readonly writes: number;
  readonly refusals: number;
  readonly gets: number;
  readonly queries: number;
}

export interface CountedTable extends Table {
  counts(): TableCounts;
}

export function createDynamoDbTable(client: DynamoDBClient, tableName: string): CountedTable {
  const counts = { writes: 0, refusals: 0, gets: 0, queries: 0 };
  return {
    counts: () => ({ ...counts }),
    async get(key) {
      counts.gets += 1;
      const answer = await asFault(tableName, () =>
        client.send(new GetItemCommand({ TableName: tableName, Key: encodeKey(key), ConsistentRead: true })),
      );
      return answer.Item === undefined ? undefined : checkRow(decodeRow(answer.Item), key);
    },
    query(pk, skPrefix = "", skFrom = "") {
      return asFault(tableName, () =>
        readPartition(client, tableName, { pk, skPrefix, skFrom }, () => {
          counts.queries += 1;
        }),
      );
    },
    async update(key, expression, values) {
      const encoded = encodeValues(values);
      counts.writes += 1;
      const outcome = await asFault(tableName, () => updateRow(client, tableName, key, expression, encoded));
      if (outcome.kind === "refused") counts.refusals += 1;
      else checkUpdated(outcome.row, key, expression, values);
      return outcome;
    },
  };
}

async function updateRow(
  client: DynamoDBClient,
  tableName: string,
  key: RowKey,
  expression: UpdateExpression,
  values: Record<string, AttributeValue>,
): Promise<UpdateOutcome> {
  const { update, clauses, columns } = expression;
  try {
    const answer = await client.send(
      new UpdateItemCommand({
        TableName: tableName,
        Key: encodeKey(key),
        UpdateExpression: update,
        ...(clauses.length === 0 ? {} : { ConditionExpression: clauses.join(" AND ") }),
        ExpressionAttributeNames: { ...columns },
        ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
        ReturnValues: "ALL_NEW",
      }),
    );
    return { kind: "applied", row: decodeRow(answer.Attributes ?? {}) };
  } catch (error) {
    if (!(error instanceof ConditionalCheckFailedException)) throw error;
    return { kind: "refused", retried: (error.$metadata.attempts ?? 2) > 1 };
  }
}

async function readPartition(
  client: DynamoDBClient,
  tableName: string,
  range: { readonly pk: string; readonly skPrefix: string; readonly skFrom: string },
  onPage: () => void,
): Promise<StoredRow[]> {
  const rows: StoredRow[] = [];
  let from: Record<string, AttributeValue> | undefined;
  do {
    onPage();
    const page = await client.send(
      new QueryCommand({
        TableName: tableName,
        ConsistentRead: true,
        ...keysIn(range),
        ...(from === undefined ? {} : { ExclusiveStartKey: from }),
      }),
    );
    if (page.Items === undefined) throw anotherAnswer();
    rows.push(...page.Items.map(decodeRow));
    from = page.LastEvaluatedKey;
  } while (from !== undefined);
  checkRows(rows, range);
  return rows;
}

/** One condition on `sk` is all that a query takes. */
function keysIn(range: { readonly pk: string; readonly skPrefix: string; readonly skFrom: string }) {
  const [condition, sk] =
    range.skPrefix !== "" ? [" AND begins_with(sk, :sk)", range.skPrefix] : [" AND sk >= :sk", range.skFrom];
  const pk = { ":pk": { S: range.pk } };
  if (sk === "") return { KeyConditionExpression: "pk = :pk", ExpressionAttributeValues: pk };
  return {
    KeyConditionExpression: `pk = :pk${condition}`,
    ExpressionAttributeValues: { ...pk, ":sk": { S: sk } },
  };
}

async function asFault<T>(tableName: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    throw faultOf(error, tableName);
  }
}

function encodeKey(key: RowKey): Record<string, AttributeValue> {
  return { pk: { S: key.pk }, sk: { S: key.sk } };
}

function encodeValues(values: Readonly<Record<string, Scalar>>): Record<string, AttributeValue> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, encode(value)]));
}

function encode(value: Scalar): AttributeValue {
  if (typeof value === "string") return { S: value };
  if (typeof value === "boolean") return { BOOL: value };
  if (typeof value === "object") return { B: value };
  if (!Number.isFinite(value)) throw new RangeError(`the table can't hold ${value}`);
  return { N: String(value) };
}

/** Columns of types that we never write are left out. */
function decodeRow(item: Record<string, AttributeValue>): StoredRow {
  const columns: [string, Scalar][] = [];
  for (const [name, value] of Object.entries(item)) {
    if (value.S !== undefined) columns.push([name, value.S]);
    else if (value.N !== undefined) columns.push([name, Number(value.N)]);
    else if (value.BOOL !== undefined) columns.push([name, value.BOOL]);
    else if (value.B !== undefined) columns.push([name, value.B]);
  }
  return Object.fromEntries(columns);
}
