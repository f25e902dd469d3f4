/** How a deployment is configured, and what becomes of one that isn't. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { createMisconfiguredApp } from "../../functions/api/misconfigured-app.ts";
import { loadConfig } from "../../functions/config.ts";
import { workerReserveMib } from "../../functions/pool/cost.ts";
import { Fault } from "../../functions/rewards/faults.ts";

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

it("counts on as much of a worker's memory as the supervisor really keeps", () => {
  const supervisor = readFileSync("functions/supervisor/main.py", "utf8");
  expect(supervisor).toContain(`_OWN_MEMORY_MIB = ${workerReserveMib}\n`);
});
