/** What only somebody who changes the configuration can mend: told at once, with what to do, by a service that lives. */
import { totalmem } from "node:os";
import { CreateTableCommand, DeleteTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { localDynamoDbAccess, startDynamoDb } from "../../functions/local/dynamodb.ts";
import { startE2bServer } from "../../functions/local/e2b/server.ts";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";
import { removeWorkers, useFaultyStack } from "./fault-table.ts";
import { askForRewards, expectOutcome } from "./known-batch.ts";
import { type Fault, supervisorSays } from "./proxy/fault.ts";
import type { Rule } from "./proxy/rules.ts";

type Address = Pick<LocalStack, "url" | "apiKey">;

interface Readiness {
  readonly status: number;
  readonly body: {
    readonly status: string;
    readonly checks: { readonly table: string; readonly e2b: string; readonly pool: unknown };
  };
}

async function readReadiness({ url, apiKey }: Address): Promise<Readiness> {
  const response = await fetch(`${url}/readyz`, { headers: { authorization: `Bearer ${apiKey}` } });
  return { status: response.status, body: (await response.json()) as Readiness["body"] };
}

/** The service lives, says which thing is wrong, and refuses a batch for that long before its deadline. */
async function expectMisconfigured(
  stack: Address,
  wrong: "table" | "e2b",
  says: RegExp,
  code = "misconfigured",
) {
  expect((await fetch(`${stack.url}/healthz`)).status).toBe(200);
  const startedAtMs = performance.now();
  expectOutcome(await askForRewards(stack, { deadlineMs: 120_000 }), { refused: code, says });
  expect(performance.now() - startedAtMs).toBeLessThan(25_000);
  const { status, body } = await readReadiness(stack);
  expect({ status, said: body.status }).toEqual({ status: 503, said: "unavailable" });
  expect(body.checks[wrong]).toMatch(says);
  expect(body.checks[wrong]).toMatch(new RegExp(`^${code}: `));
}

describe("a service that was configured right, and then", () => {
  const behind = useFaultyStack();

  /** One flag byte, four of length, and the message: short enough that no byte is beyond ASCII. */
  const frame = (flags: number, message: string) =>
    String.fromCharCode(flags, 0, 0, 0, message.length) + message;
  const exit127 = [
    frame(0, '{"event":{"start":{"pid":7}}}'),
    frame(0, '{"event":{"end":{"exitCode":127,"exited":true,"status":"exit status 127"}}}'),
    frame(2, "{}"),
  ].join("");
  const creation = (fault: Fault): Rule => ({
    path: "control",
    match: { method: "POST", url: "/v2/sandboxes" },
    fault,
  });
  const said = (code: number, message: string): Fault => ({
    kind: "answer",
    status: code,
    body: JSON.stringify({ code, message }),
  });

  it.each<{ what: string; rule: Rule; wrong: "table" | "e2b"; says: RegExp; code?: string }>([
    {
      what: "E2B's key was revoked",
      rule: { path: "control", fault: said(401, "no such key") },
      wrong: "e2b",
      says: /E2B refused the API key.*Set a key that is valid/,
    },
    {
      what: "the team was blocked",
      rule: { path: "control", fault: said(403, "team is blocked") },
      wrong: "e2b",
      says: /E2B refused to .*\(status 403\): team is blocked/,
    },
    {
      what: "the template was deleted",
      rule: creation(said(404, "template 'base' not found")),
      wrong: "e2b",
      says: /status 404.*template 'base' not found/,
    },
    {
      what: "the plan allows shorter lives only",
      rule: creation(said(400, "Timeout cannot be greater than 0 hours")),
      wrong: "e2b",
      says: /status 400.*Timeout cannot be greater/,
    },
    {
      what: "the template has no Python",
      rule: {
        path: "envd",
        match: { url: "/process.Process/Start" },
        fault: {
          kind: "answer",
          status: 200,
          body: exit127,
          headers: { "content-type": "application/connect+json" },
        },
      },
      wrong: "e2b",
      says: /found no python3.*Use a template that has Python 3\.9/,
    },
    {
      what: "the kernel lacks a property",
      rule: {
        path: "supervisor",
        match: { url: "/v1/health" },
        fault: supervisorSays(503, {
          state: "refused",
          failed: [{ property: "user_namespaces", detail: "EPERM", remedy: "Allow them." }],
        }),
      },
      wrong: "e2b",
      code: "isolation_failed",
      says: /user_namespaces: EPERM. To do: Allow them\./,
    },
    {
      what: "the role lost its rights",
      rule: {
        path: "table",
        fault: { kind: "answer", status: 400, body: '{"__type":"x#AccessDeniedException","message":"no"}' },
      },
      wrong: "table",
      says: /access to the table is denied. Allow GetItem, Query and UpdateItem/,
    },
  ])("$what", async ({ rule, wrong, says, code }) => {
    await removeWorkers(behind());
    const added = behind().proxy.add(rule);
    await expectMisconfigured(behind().stack, wrong, says, code);
    expect(added.injected.length).toBeGreaterThan(0);
    behind().proxy.clear();
    expectOutcome(await askForRewards(behind().stack), "right");
    expect(await readReadiness(behind().stack)).toMatchObject({
      status: 200,
      body: { checks: { table: "ok", e2b: "ok" } },
    });
  });
});

describe("a service that was told of larger workers than there are", () => {
  const memoryMib = Math.ceil(totalmem() / 2 ** 20) * 4;
  const behind = useFaultyStack({ worker: { vcpus: 2, memoryMib } });

  it("gives no verdict on a task that no worker can run, and judges those beside it", async () => {
    const { url, apiKey } = behind().stack;
    const testCases = [{ input: "", output: "1" }];
    const task = (more: object) => ({ test_cases: testCases, ...more });
    const completion = "```python\nprint(1)\n```";
    const response = await fetch(`${url}/v1/rewards`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        samples: [
          { task: task({}), completion },
          { task: task({ limits: { memory_mib: memoryMib - 200 } }), completion },
          { task: task({ limits: { memory_mib: 64 } }), completion },
        ],
      }),
    });
    const answer = await response.json();
    expect(answer).toMatchObject({ rewards: [1, null, 1] });
    expect((answer as { results: unknown[] }).results[1]).toMatchObject({
      fault: { code: "invalid_task", detail: expect.stringMatching(/memory_mib is over/), retryable: false },
    });
  });
});

describe("a service that was configured wrong from its start", () => {
  let e2b: Awaited<ReturnType<typeof startE2bServer>>;
  let dynamoDb: Awaited<ReturnType<typeof startDynamoDb>>;
  const open: LocalStack[] = [];
  beforeAll(async () => {
    e2b = await startE2bServer({ apiKey: "e2b_right", plan: { createsPerSecond: 100 } });
    dynamoDb = await startDynamoDb({ port: 0 });
  });
  afterAll(async () => {
    for (const stack of open) await stack.close();
    await dynamoDb?.close();
    expect(e2b?.sandboxCounts()).toEqual({ running: 0, paused: 0 });
    await e2b?.close();
  });

  async function start(apiKey: string): Promise<LocalStack> {
    const { apiUrl, sandboxUrl } = e2b;
    const { endpoint } = dynamoDb;
    const stack = await startLocalStack({
      port: 0,
      cron: false,
      e2b: { apiKey, apiUrl, sandboxUrl },
      dynamoDbEndpoint: endpoint,
    });
    open.push(stack);
    return stack;
  }

  it("with a wrong key of E2B's lives and says so", async () => {
    await expectMisconfigured(await start("e2b_wrong"), "e2b", /E2B refused the API key/);
  });

  it("with a table that is gone, or one of other keys under its name, lives and says so", async () => {
    const stack = await start("e2b_right");
    await stack.emptyPool();
    const client = new DynamoDBClient({ ...localDynamoDbAccess, endpoint: dynamoDb.endpoint });
    await client.send(new DeleteTableCommand({ TableName: stack.tableName }));
    await expect
      .poll(() => readReadiness(stack).then(({ body }) => body.checks.table))
      .toMatch(/does not exist/);
    await expectMisconfigured(stack, "table", /"code-rewards-local": the table does not exist\. Create it/);
    const other = new CreateTableCommand({
      TableName: stack.tableName,
      BillingMode: "PAY_PER_REQUEST",
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
    });
    const isCreated = () =>
      client.send(other).then(
        () => true,
        () => false, // the old one is still being deleted
      );
    await expect.poll(isCreated, { timeout: 10_000 }).toBe(true);
    await expect.poll(() => readReadiness(stack).then(({ body }) => body.checks.table)).toMatch(/other keys/);
    await expectMisconfigured(stack, "table", /other keys than pk and sk.*Name the right table/);
  });
});
