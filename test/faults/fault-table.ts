/**
 * Rows of faults over one stack: each does its harm, really, and the batch's answer is what it must be.
 *
 * Whatever a row did, no reward was a wrong number, and in the end nothing is left that E2B would bill.
 */

import { DeleteItemCommand, DynamoDBClient, QueryCommand } from "@aws-sdk/client-dynamodb";
import { Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { localDynamoDbAccess } from "../../functions/local/dynamodb.ts";
import { callEndpoint } from "../../functions/local/rewards-client.ts";
import { type AskOptions, askForRewards, expectOutcome, type Outcome } from "./known-batch.ts";
import { type ProxiedStack, type ProxiedStackOptions, startProxiedStack } from "./proxied-stack.ts";
import type { AddedRule } from "./proxy/fault-proxy.ts";
import type { Rule } from "./proxy/rules.ts";

export interface FaultRow {
  readonly name: string;
  readonly rules: readonly Rule[];
  readonly outcome: Outcome;
  /** Whether the batch finds a pool without workers. Default: it finds one that is free. */
  readonly emptyPool?: boolean;
  readonly ask?: AskOptions;
  /** What else happens at the fault's time, after the rules were added. */
  readonly act?: (behind: ProxiedStack) => Promise<unknown>;
  /** Faults that must have been done, over all rules. Default: 1. */
  readonly injected?: number;
}

/** Short where the product waits for others, so that a silent one is a matter of seconds. */
const hasty: ProxiedStackOptions = {
  plan: "pro",
  // A creation without a sure end keeps its slot until the end of the file.
  slots: 60,
  e2b: { requestTimeoutMs: 2_000, sandboxRequestTimeoutMs: 2_500 },
  dynamoDb: { connectionTimeoutMs: 1_000, requestTimeoutMs: 500 },
  // Pauses are as short as their jitter allows; how long they may be is asserted elsewhere.
  random: () => 0,
};

/** A stack for the tests of the file. `behind()` is it. */
export function useFaultyStack(options: ProxiedStackOptions = {}): () => ProxiedStack {
  let behind: ProxiedStack;
  beforeAll(async () => {
    behind = await startProxiedStack({ ...hasty, ...options });
  });
  afterEach(() => behind?.proxy.clear());
  afterAll(async () => {
    if (behind === undefined) return;
    behind.proxy.clear();
    expect(await finishAll(behind)).toEqual({ running: 0, paused: 0 });
    await behind.close();
  });
  return () => behind;
}

/** Runs the rows, one after the other. */
export function testRows(behind: () => ProxiedStack, rows: readonly FaultRow[]): void {
  it.each(rows)("$name", async (row) => {
    await prepare(behind(), row.emptyPool ?? false);
    const added = row.rules.map((rule) => behind().proxy.add(rule));
    const acting = row.act?.(behind());
    const answer = await askForRewards(behind().stack, row.ask);
    await acting;
    behind().proxy.clear();
    expect(countInjected(added), "faults that were really done").toBeGreaterThanOrEqual(row.injected ?? 1);
    expectOutcome(answer, row.outcome);
  });
}

export function countInjected(added: readonly AddedRule[]): number {
  return added.reduce((sum, { injected }) => sum + injected.length, 0);
}

async function prepare(behind: ProxiedStack, isEmpty: boolean): Promise<void> {
  if (isEmpty) return removeWorkers(behind);
  const ready = (await readSlots(behind)).filter(({ state }) => state === "ready");
  if (ready.length === 0) expectOutcome(await askForRewards(behind.stack), "right");
}

export interface SlotSeen {
  readonly sk: string;
  readonly state: string;
  readonly fence: number;
  readonly sandboxId: string | undefined;
  readonly access: string | undefined;
  readonly generation: number;
  readonly lastUsedAtMs: number;
}

const tableOf = ({ dynamoDb }: ProxiedStack) =>
  new DynamoDBClient({ ...localDynamoDbAccess, endpoint: dynamoDb.endpoint });

/** The slots' rows, read past the proxy. */
export async function readSlots(behind: ProxiedStack): Promise<SlotSeen[]> {
  const { Items: items = [] } = await tableOf(behind).send(
    new QueryCommand({
      TableName: behind.stack.tableName,
      KeyConditionExpression: "pk = :pool AND begins_with(sk, :slot)",
      ExpressionAttributeValues: { ":pool": { S: "pool" }, ":slot": { S: "S#" } },
    }),
  );
  return items.map((item) => ({
    sk: item.sk?.S ?? "",
    state: item.st?.S ?? "",
    fence: Number(item.f?.N),
    generation: Number(item.gen?.N),
    lastUsedAtMs: Number(item.us?.N ?? 0),
    sandboxId: item.sb?.S,
    access: item.acc?.S,
  }));
}

/** Takes the free workers away, but for the one to keep, as if they had never been. */
export async function removeWorkers(behind: ProxiedStack, keep?: string): Promise<void> {
  const table = tableOf(behind);
  for (const { sk, state, sandboxId } of await readSlots(behind)) {
    if (state !== "ready" || sandboxId === undefined || sandboxId === keep) continue;
    await Sandbox.kill(sandboxId, behind.direct);
    const key = { pk: { S: "pool" }, sk: { S: sk } };
    await table.send(new DeleteItemCommand({ TableName: behind.stack.tableName, Key: key }));
  }
}

/** Ends every run as its trainer would, with what landed late; what E2B has then. */
export async function finishAll({ stack, e2bServer }: ProxiedStack) {
  const { runs } = (await callEndpoint(stack, "GET", "/v1/runs")) as { runs: { run_id: string }[] };
  for (const { run_id: runId } of runs) {
    const finish = await callEndpoint(stack, "DELETE", `/v1/runs/${runId}`);
    expect(finish).toMatchObject({ remaining_sandboxes: [] });
  }
  return e2bServer.sandboxCounts();
}
