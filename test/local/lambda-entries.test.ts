/** The entries of the deployment, with the platform's part played by the test. */
import { Writable } from "node:stream";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { createMisconfiguredApp } from "../../functions/api/misconfigured-app.ts";
import { loadConfig } from "../../functions/config.ts";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";
import { Fault } from "../../functions/rewards/faults.ts";

let stack: LocalStack;

beforeAll(async () => {
  stack = await startLocalStack({ port: 0, slots: 1, cron: false, apiKey: "key" });
  for (const [name, value] of Object.entries(environment())) vi.stubEnv(name, value);
  vi.stubGlobal("awslambda", {
    streamifyResponse: (handler: unknown) => handler,
    HttpResponseStream: {
      from: (stream: Collector, metadata: { statusCode: number }) => Object.assign(stream, { metadata }),
    },
  });
});

afterAll(async () => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  await stack?.close();
});

function environment() {
  return {
    CODE_REWARDS_API_KEYS: "old, key",
    CODE_REWARDS_TABLE: stack.tableName,
    CODE_REWARDS_SLOTS: "1",
    E2B_API_KEY: stack.e2b.apiKey,
    E2B_API_URL: stack.e2b.apiUrl ?? "",
    E2B_SANDBOX_URL: stack.e2b.sandboxUrl ?? "",
    DYNAMODB_ENDPOINT: stack.dynamoDbEndpoint,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
  };
}

class Collector extends Writable {
  text = "";
  metadata = { statusCode: 0 };
  override _write(piece: Buffer, _encoding: string, done: () => void): void {
    this.text += piece.toString();
    done();
  }
}

function eventOf(method: string, path: string, body?: unknown) {
  return {
    version: "2.0",
    rawPath: path,
    rawQueryString: "",
    headers: { authorization: "Bearer key", "content-type": "application/json", host: "x.lambda-url" },
    requestContext: { http: { method, path }, domainName: "x.lambda-url" },
    isBase64Encoded: false,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
}

it("answers through the function's URL", async () => {
  const { handler } = await import("../../functions/reward.ts");
  const call = handler as unknown as (event: unknown, stream: Collector, context: unknown) => Promise<void>;
  const invoke = async (event: unknown) => {
    const stream = new Collector();
    await call(event, stream, {});
    return { status: stream.metadata.statusCode, body: JSON.parse(stream.text) };
  };
  expect(await invoke(eventOf("GET", "/healthz"))).toEqual({ status: 200, body: { status: "ok" } });
  expect(await invoke(eventOf("PUT", "/v1/runs/job-7", { workers: 1 }))).toMatchObject({
    status: 201,
    body: { workers_ready: 1 },
  });
  expect(await invoke(eventOf("POST", "/v1/runs/job-7/heartbeat"))).toMatchObject({ status: 200 });
  const task = { test_cases: [{ input: "", output: "1" }] };
  const samples = [{ task, completion: "```python\nprint(1)\n```" }];
  expect(await invoke(eventOf("POST", "/v1/rewards", { run_id: "job-7", samples }))).toMatchObject({
    status: 200,
    body: { rewards: [1] },
  });
  expect(await invoke(eventOf("DELETE", "/v1/runs/job-7"))).toMatchObject({
    status: 200,
    body: { remaining_sandboxes: [], totals: { batches: 1, verdicts: { passed: 1 } } },
  });
});

it("sweeps within the time that it is given, and says in one line what it did", async () => {
  const lines = vi.spyOn(console, "log").mockImplementation(() => {});
  const { handler } = await import("../../functions/cleanup.ts");
  await handler({}, { getRemainingTimeInMillis: () => 60_000 });
  expect(lines).toHaveBeenCalledTimes(1);
  const line = JSON.parse(String(lines.mock.calls[0]?.[0]));
  lines.mockRestore();
  expect(line).toMatchObject({
    level: "info",
    message: "swept the pool",
    faultCount: 0,
    did: { orphansKilled: 0 },
  });
});

it("lives without its configuration, and says to whoever asks what is missing", async () => {
  const app = createMisconfiguredApp(new Fault("misconfigured", "environment: E2B_API_KEY: missing"));
  expect((await app.request("/healthz")).status).toBe(200);
  const refused = await app.request("/v1/rewards", { method: "POST" });
  expect(refused.status).toBe(503);
  expect(refused.headers.has("retry-after")).toBe(false);
  expect(await refused.json()).toMatchObject({
    code: "misconfigured",
    detail: expect.stringContaining("E2B_API_KEY"),
  });
  const readiness = await app.request("/readyz");
  expect(readiness.status).toBe(503);
  expect(await readiness.json()).toMatchObject({
    status: "unavailable",
    checks: { configuration: "misconfigured: environment: E2B_API_KEY: missing", pool: null },
  });
});

it.each([
  { CODE_REWARDS_API_KEYS: " , " },
  { CODE_REWARDS_API_KEYS: "a key with blanks" },
  { CODE_REWARDS_TABLE: "" },
  { E2B_API_KEY: " " },
  { E2B_DOMAIN: "https://e2b.app" },
  { E2B_API_URL: "ftp://127.0.0.1" },
  { E2B_SANDBOX_URL: "127.0.0.1:49983" },
  { DYNAMODB_ENDPOINT: "here" },
  { CODE_REWARDS_PLAN: "enterprise" },
  { CODE_REWARDS_SLOTS: "0" },
  { CODE_REWARDS_SLOTS: "1001" },
  { CODE_REWARDS_CREATE_INTERVAL_MS: "fast" },
  { CODE_REWARDS_LIFE_MS: "-1" },
  { CODE_REWARDS_WORKER_MEMORY_MIB: "128" },
  { CODE_REWARDS_WORKER_VCPUS: "none" },
  { CODE_REWARDS_USD_PER_GIB_HOUR: "free" },
])("refuses the configuration %j, and names the variable", (change) => {
  const right = { CODE_REWARDS_API_KEYS: "a", CODE_REWARDS_TABLE: "t", E2B_API_KEY: "e" };
  expect(() => loadConfig(right)).not.toThrow();
  const named = expect.stringContaining(`${Object.keys(change)[0]}: `);
  expect(() => loadConfig({ ...right, ...change })).toThrow(
    expect.objectContaining({ name: "Fault", code: "misconfigured", message: named }),
  );
});

it("names every problem of a configuration at once, and no value", () => {
  const broken = { CODE_REWARDS_API_KEYS: "secret", E2B_API_URL: "secret", CODE_REWARDS_PLAN: "secret" };
  expect(() => loadConfig(broken)).toThrow(
    expect.objectContaining({
      code: "misconfigured",
      message: expect.stringMatching(
        /^(?!.*secret).*CODE_REWARDS_TABLE.*E2B_API_KEY.*E2B_API_URL.*CODE_REWARDS_PLAN/,
      ),
    }),
  );
});

it("has the plan's limits unless told otherwise, and E2B's list prices", () => {
  const required = {
    CODE_REWARDS_API_KEYS: "a,b,",
    CODE_REWARDS_TABLE: "t",
    E2B_API_KEY: "e",
    E2B_DOMAIN: " ",
  };
  const more = { CODE_REWARDS_PLAN: "pro", CODE_REWARDS_SLOTS: "150" };
  expect(loadConfig({ ...required, ...more })).toEqual({
    apiKeys: ["a", "b"],
    e2b: { apiKey: "e" },
    dynamoDb: {},
    tableName: "t",
    plan: { slots: 150, createIntervalMs: 220, lifeMs: 86_400_000 },
    worker: { vcpus: 2, memoryMib: 512 },
    rates: { usdPerVcpuHour: 0.0504, usdPerGibHour: 0.0162 },
  });
});
