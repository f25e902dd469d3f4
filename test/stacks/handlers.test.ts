/** The functions as they are deployed: bundled as SST does it, run by AWS's own client on the Nodes of Lambda. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import { smokeRewards } from "../../functions/local/smoke-programs.ts";
import { readPoolId } from "../../functions/pool/identity.ts";
import { traceE2bClient } from "./lambda/bundle.ts";
import type { Container } from "./lambda/container.ts";
import { type Deployment, deploy } from "./lambda/deployment.ts";
import { batchOf, grade, logOf, readLines, send, sleepThenPrint, smokeBatch } from "./lambda/requests.ts";
import { fetchTimeoutMs, lambdaNodes } from "./lambda/runtimes.ts";

const clientLoaded = "the client of E2B is loaded";

describe.each(lambdaNodes)("on %s", (node) => {
  let deployment: Deployment;
  let rewards: Container;
  let apiKey: string;

  beforeAll(async () => {
    deployment = await deploy({ slots: 1 });
    apiKey = deployment.world.apiKey;
    traceE2bClient(await deployment.bundle("functions/reward.ts", node), clientLoaded);
    rewards = await deployment.start("functions/reward.ts", node);
  }, fetchTimeoutMs);

  afterAll(() => deployment?.close());

  const countLoads = ({ said }: Container) => said().filter((line) => line.includes(clientLoaded)).length;

  it("starts without E2B's client, and lives without a key", async () => {
    expect(rewards.initError).toBeNull();
    const health = await fetch(`${rewards.url}/healthz`);
    expect({ status: health.status, body: await health.json() }).toEqual({
      status: 200,
      body: { status: "ok" },
    });
    expect(rewards.said()).toEqual([]);
  });

  it("grades the smoke batch on a new worker, for which E2B's client is loaded", {
    timeout: 90_000,
  }, async () => {
    const answer = await (await grade(rewards, smokeBatch, { apiKey })).json();
    expect(answer).toMatchObject({ rewards: Object.values(smokeRewards), usage: { workers_created: 1 } });
    expect(countLoads(rewards)).toBe(1);
  });

  it("does without E2B's client in a container that creates no worker", async () => {
    const second = await deployment.start("functions/reward.ts", node);
    const answer = await (await grade(second, batchOf("print(1)"), { apiKey })).json();
    expect(answer).toMatchObject({ rewards: [1], usage: { workers_created: 0 } });
    expect(countLoads(second)).toBe(0);
  });

  it("sends lines while the batch runs", async () => {
    const samples = [0, 1.5].flatMap((seconds) => batchOf(sleepThenPrint(seconds)).samples);
    const headers = { accept: "application/x-ndjson" };
    const response = await grade(rewards, { samples }, { apiKey, headers });
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    const lines = await readLines(response);
    const first = lines.find(({ line }) => line.type === "result");
    const last = lines.at(-1);
    expect(first?.line).toMatchObject({ index: 0, reward: 1 });
    expect(last?.line).toMatchObject({ type: "summary", rewards: [1, 1] });
    expect((last?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(500);
  });

  it.each([
    { what: "text", body: (json: string) => json, encoding: {} },
    { what: "gzip", body: (json: string) => gzipSync(json), encoding: { "content-encoding": "gzip" } },
    {
      what: "base64, although it is text",
      body: (json: string) => json,
      encoding: { "content-encoding": "identity" },
    },
  ])("reads a body that the platform hands over as $what", async ({ body, encoding }) => {
    const json = JSON.stringify(batchOf("print(1) # ∑"));
    const response = await grade(rewards, null, { apiKey, body: body(json), headers: encoding });
    expect(await response.json()).toMatchObject({ rewards: [1] });
  });

  it("refuses with the interface's own problems and headers, whatever the method", async () => {
    const headers = { "x-request-id": "trace/7" };
    const unknown = await send(rewards, "/v1/runs/nobody", { apiKey, headers });
    expect({ status: unknown.status, type: unknown.headers.get("content-type") }).toEqual({
      status: 404,
      type: "application/problem+json",
    });
    expect(unknown.headers.get("x-request-id")).toBe("trace/7");
    expect(await unknown.json()).toMatchObject({ code: "run_not_found", request_id: "trace/7" });
    const head = await fetch(`${rewards.url}/healthz`, { method: "HEAD" });
    expect({ status: head.status, text: await head.text() }).toEqual({ status: 200, text: "" });
    expect((await fetch(`${rewards.url}/healthz`, { method: "PATCH" })).status).toBe(405);
  });

  it("survives an event that comes by no URL", async () => {
    const { kind, text } = await rewards.invoke({ "detail-type": "Scheduled Event" });
    expect({ kind, text }).toEqual({ kind: "response", text: expect.stringContaining('"code":"internal"') });
    expect((await fetch(`${rewards.url}/healthz`)).status).toBe(200);
  });

  it("sweeps on schedule: kills a sandbox that no slot knows, and counts it", async () => {
    const { world } = deployment;
    const cleanup = await deployment.start("functions/cleanup.ts", node, { timeoutMs: 120_000 });
    const poolId = await readPoolId(world.table, () => "unnamed");
    const before = world.sandboxes();
    const orphan = { poolId, slot: 0, generation: 77 };
    await createE2bSandboxes(world.e2b).create(orphan, 60_000, new AbortController().signal);
    expect(world.sandboxes()).toBe(before + 1);
    expect(await cleanup.invoke({ "detail-type": "Scheduled Event" })).toEqual({
      kind: "response",
      text: "null",
    });
    expect(world.sandboxes()).toBe(before);
    expect(logOf(cleanup)).toMatchObject([
      { level: "INFO", message: "swept the pool", faultCount: 0, did: { orphansKilled: 1 } },
      { service: "code-rewards-test", OrphansKilled: 1, SweepFailures: 0 },
    ]);
  });
});
