/** Where the deployed functions have their secrets from, and whom they serve without any. */
import { createCipheriv, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Deployment, deploy } from "./lambda/deployment.ts";
import { batchOf, grade, logOf, send } from "./lambda/requests.ts";
import { fetchTimeoutMs, type LambdaNode } from "./lambda/runtimes.ts";

const node: LambdaNode = "node24";
const rewards = "functions/reward.ts";
const cleanup = "functions/cleanup.ts";
let deployment: Deployment;

beforeAll(async () => {
  deployment = await deploy({ slots: 1 });
}, fetchTimeoutMs);

afterAll(() => deployment?.close());

/** Puts secrets beside a function as SST does; the variables that go with them, in the place of those with secrets. */
async function link(entry: string, secrets: Readonly<Record<string, string>>) {
  const { folder } = await deployment.bundle(entry, node);
  const key = randomBytes(32);
  const cipher = createCipheriv("aes-256-gcm", key, Buffer.alloc(12));
  const linked = Object.fromEntries(
    Object.entries(secrets).map(([name, value]) => [name, { type: "sst.sst.Secret", value }]),
  );
  const sealed = [cipher.update(JSON.stringify(linked)), cipher.final(), cipher.getAuthTag()];
  writeFileSync(join(folder, "resource.enc"), Buffer.concat(sealed));
  return {
    E2B_API_KEY: "",
    CODE_REWARDS_API_KEYS: "",
    SST_KEY: key.toString("base64"),
    SST_KEY_FILE: "resource.enc",
    SST_RESOURCE_App: JSON.stringify({ name: "code-rewards", stage: "test" }),
  };
}

describe("secrets that are linked", () => {
  it("are read from their file, and told nobody", async () => {
    const { world } = deployment;
    const secrets = { E2bApiKey: world.e2b.apiKey, RewardApiKeys: "an-older-key, a-newer-key" };
    const environment = await link(rewards, secrets);
    const container = await deployment.start(rewards, node, { environment });
    for (const apiKey of ["an-older-key", "a-newer-key"]) {
      const answer = await grade(container, batchOf("print(1)"), { apiKey });
      expect(await answer.json()).toMatchObject({ rewards: [1] });
    }
    expect((await send(container, "/v1/runs", { apiKey: world.apiKey })).status).toBe(401);
    expect(container.said().join("\n")).not.toMatch(
      new RegExp(`a-newer-key|an-older-key|${world.e2b.apiKey}`),
    );
  });

  it("are for the sweep those that it needs", async () => {
    const environment = await link(cleanup, { E2bApiKey: deployment.world.e2b.apiKey });
    const container = await deployment.start(cleanup, node, {
      environment: { ...environment, CODE_REWARDS_AUTH: "aws_iam" },
    });
    expect(await container.invoke({})).toEqual({ kind: "response", text: "null" });
    expect(logOf(container)).toMatchObject([
      { message: "swept the pool", faultCount: 0 },
      { SweepFailures: 0 },
    ]);
  });

  it.each([
    { what: "another key than the file's", change: { SST_KEY: randomBytes(32).toString("base64") } },
    { what: "no file", change: { SST_KEY_FILE: "elsewhere.enc" } },
  ])("that can't be read are a problem of the configuration: $what", async ({ change }) => {
    const environment = { ...(await link(rewards, {})), ...change };
    const container = await deployment.start(rewards, node, { environment });
    expect(container.initError).toBeNull();
    expect((await fetch(`${container.url}/healthz`)).status).toBe(200);
    expect(await (await grade(container, {}, { apiKey: "any" })).json()).toMatchObject({
      code: "misconfigured",
    });
  });
});

it("serves whom the platform has identified where callers sign, and nobody else", async () => {
  const environment = { CODE_REWARDS_AUTH: "aws_iam", CODE_REWARDS_API_KEYS: "" };
  const container = await deployment.start(rewards, node, { environment });
  const identity = { authorizer: { iam: { userArn: "arn:aws:iam::123456789012:user/trainer" } } };
  const ask = async (more: object) => {
    const http = { method: "GET", path: "/v1/runs" };
    const requestContext = { domainName: "function.url", http, ...more };
    const event = { version: "2.0", rawPath: "/v1/runs", rawQueryString: "", headers: {}, requestContext };
    return (await container.invoke({ ...event, isBase64Encoded: false })).text;
  };
  expect(await ask(identity)).toMatch(/"statusCode":200.*"runs":\[/s);
  expect(await ask({})).toMatch(/"statusCode":401.*"unauthorized"/s);
});
