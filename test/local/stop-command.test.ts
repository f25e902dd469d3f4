/** `npm run stop`, as a person types it in a hurry. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createDynamoDbClient } from "../../functions/adapters/dynamodb-client.ts";
import { ensureTable } from "../../functions/adapters/dynamodb-setup.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import { localDynamoDbAccess } from "../../functions/local/dynamodb.ts";
import { callEndpoint, requestRewards } from "../../functions/local/rewards-client.ts";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
let stack: LocalStack;

beforeAll(async () => {
  stack = await startLocalStack({ port: 0, slots: 2, cron: false });
});
afterAll(() => stack?.close());

async function stop(...args: string[]) {
  const { AWS_PROFILE: _, ...environment } = process.env;
  const child = promisify(execFile)(process.execPath, ["--import", "tsx", "functions/stop.ts", ...args], {
    cwd: root,
    timeout: 60_000,
    env: {
      ...environment,
      E2B_API_KEY: stack.e2b.apiKey,
      E2B_API_URL: stack.e2b.apiUrl,
      E2B_SANDBOX_URL: stack.e2b.sandboxUrl,
      DYNAMODB_ENDPOINT: stack.dynamoDbEndpoint,
      AWS_REGION: "us-east-1",
      AWS_ACCESS_KEY_ID: "local",
      AWS_SECRET_ACCESS_KEY: "local",
    },
  });
  return child.then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}

it("ends a run in the middle of its batch, and leaves no sandbox", async () => {
  await callEndpoint(stack, "PUT", "/v1/runs/job-7", { name: "job 7", workers: 2 });
  const completion = "```python\nimport time\ntime.sleep(50)\nprint(1)\n```";
  const task = { test_cases: [{ input: "", output: "1" }], limits: { time_ms: 60_000 } };
  const batch = requestRewards(stack, { run_id: "job-7", samples: [{ task, completion }] }).catch(() => null);
  const isBusy = async () => {
    const { checks } = (await callEndpoint(stack, "GET", "/readyz")) as {
      checks: { pool: { leased: number } };
    };
    return checks.pool.leased;
  };
  await expect.poll(isBusy, { timeout: 20_000 }).toBeGreaterThan(0);
  const { code, stdout, stderr } = await stop("--stage", "test", "--table", stack.tableName);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(/^runs ended: job-7; sandboxes killed: [12]\nno sandbox is left running\n$/);
  // Whatever became of the batch's sample, it was not scored for having been stopped.
  expect((await batch)?.rewards ?? [null]).toEqual([null]);
  expect(await callEndpoint(stack, "GET", "/v1/runs/job-7")).toMatchObject({ state: "finished" });
}, 90_000);

it("finds the stage's table itself, and says when there is none, or more than one", async () => {
  const dynamoDb = createDynamoDbClient({ ...localDynamoDbAccess, endpoint: stack.dynamoDbEndpoint });
  const none = await stop("--stage", "dev");
  expect(none).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("no table code-rewards-dev-PoolTable-"),
  });
  await ensureTable(dynamoDb, "code-rewards-dev-PoolTable-abc", systemClock);
  await ensureTable(dynamoDb, "code-rewards-dev2-PoolTable-abc", systemClock);
  const one = await stop("--stage", "dev");
  expect(one).toMatchObject({ code: 0, stdout: expect.stringContaining("nothing to stop") });
  await ensureTable(dynamoDb, "code-rewards-dev-PoolTable-xyz", systemClock);
  const two = await stop("--stage", "dev");
  expect(two).toMatchObject({ code: 1, stderr: expect.stringMatching(/--table .*-abc or .*-xyz/) });
}, 60_000);

it("asks for the stage", async () => {
  expect(await stop()).toMatchObject({ code: 2, stderr: expect.stringContaining("--stage is needed") });
});
