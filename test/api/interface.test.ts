import { describe, expect, it } from "vitest";
import { answerExample, ProblemAnswer, RewardsAnswer } from "../../functions/api/answer-schemas.ts";
import { createApp } from "../../functions/api/app.ts";
import { hashApiKey } from "../../functions/api/authentication.ts";
import { requestExample } from "../../functions/api/request-examples.ts";
import { createVirtualClock } from "../rewards/virtual-clock.ts";
import { apiKey, createTestApp, jsonHeaders, noRuns, post, readProblem, rightRequest } from "./test-app.ts";

describe("a request's key", () => {
  it.each([
    ["none", undefined],
    ["an empty one", "Bearer "],
    ["a wrong one", "Bearer wrong"],
    ["a part of the right one", `Bearer ${apiKey.slice(0, -1)}`],
    ["the right one and more", `Bearer ${apiKey}x`],
    ["of another scheme", `Basic ${apiKey}`],
    ["two", `Bearer ${apiKey} ${apiKey}`],
    ["the hash of the right one", `Bearer ${hashApiKey(apiKey).toString("hex")}`],
  ])("%s is refused with a challenge, its body unread", async (_, authorization) => {
    const { app, logged } = createTestApp();
    const headers = {
      "content-type": "application/json",
      ...(authorization === undefined ? {} : { authorization }),
    };
    for (const [path, method] of [
      ["/v1/rewards", "POST"],
      ["/readyz", "GET"],
      ["/v1/runs", "GET"],
      ["/v1/runs/job-7", "PUT"],
      ["/v1/runs/job-7", "DELETE"],
      ["/v1/runs/job-7/heartbeat", "POST"],
      ["/v1/batches/a", "DELETE"],
    ] as const) {
      const answer = await app.request(path, {
        method,
        headers,
        ...(method === "POST" || method === "PUT" ? { body: "{" } : {}),
      });
      expect(answer.status).toBe(401);
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer realm="code-rewards"/);
      expect(await readProblem(answer)).toMatchObject({ code: "unauthorized" });
    }
    expect(logged).toEqual([]);
  });

  it.each(["an-older-key", apiKey])("may be any of several: %s", async (key) => {
    const answer = await post(createTestApp(), rightRequest(), { authorization: `bearer ${key}` });
    expect(answer.status).toBe(200);
  });

  it("must be there for an app to be made at all", () => {
    const deps = depsOf();
    expect(() => createApp({ ...deps, apiKeyHashes: [] })).toThrow("at least one API key");
    expect(() => createApp({ ...deps, apiKeyHashes: [Buffer.from("key")] })).toThrow("SHA-256");
    expect(() => createApp({ ...deps, config: { ...deps.config, maxMemoryMib: 16 } })).toThrow("16 MiB");
  });
});

function depsOf(): Parameters<typeof createApp>[0] {
  return {
    apiKeyHashes: [hashApiKey("x")],
    admitBatch: async () => {
      throw new Error("not called");
    },
    runs: noRuns,
    cancelBatch: async () => ({ kind: "batch_not_found" }),
    probeReadiness: async () => ({ isReady: true, checks: {} }),
    config: { maxMemoryMib: 448, slots: 20, costUsd: () => 0 },
    clock: createVirtualClock(0),
    log: () => {},
  };
}

describe("a request's id", () => {
  it.each(["abc", "trainer-1/step.3:rank_0", "Root=1-67891233-abcdef012345678912345678", "A".repeat(128)])(
    "%s is the caller's",
    async (id) => {
      const { app } = createTestApp();
      for (const path of ["/healthz", "/nowhere", "/v1/rewards"]) {
        const answer = await app.request(path, { headers: { "x-request-id": id } });
        expect(answer.headers.get("x-request-id")).toBe(id);
        if (path !== "/healthz") expect(await readProblem(answer)).toMatchObject({ request_id: id });
      }
    },
  );

  it.each(["", "with space", "A".repeat(129), 'quote"', "<b>"])("'%s' is replaced", async (id) => {
    const answer = await createTestApp().app.request("/healthz", { headers: { "x-request-id": id } });
    expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("is in an answer's body as well", async () => {
    const answer = await post(createTestApp(), rightRequest(), { "x-request-id": "mine" });
    expect(await answer.json()).toMatchObject({ request_id: "mine" });
    expect(answer.headers.get("x-request-id")).toBe("mine");
  });
});

describe("what there is", () => {
  it.each([
    ["GET", "/", 404],
    ["GET", "/v1", 404],
    ["POST", "/v1/reward", 404],
    ["GET", "/v1/rewards/1", 404],
    ["GET", "/V1/REWARDS", 404],
  ])("%s %s is nothing", async (method, path, status) => {
    const answer = await createTestApp().app.request(path, { method });
    expect(answer.status).toBe(status);
    expect(await readProblem(answer)).toMatchObject({ code: "not_found", status });
  });

  it.each([
    ["GET", "/v1/rewards", "POST"],
    ["PUT", "/v1/rewards", "POST"],
    ["DELETE", "/v1/rewards", "POST"],
    ["POST", "/healthz", "GET, HEAD"],
    ["DELETE", "/readyz", "GET, HEAD"],
    ["PATCH", "/openapi.json", "GET, HEAD"],
    ["POST", "/docs", "GET, HEAD"],
    ["POST", "/v1/runs", "GET, HEAD"],
    ["POST", "/v1/runs/job-7", "GET, HEAD, PUT, DELETE"],
    ["GET", "/v1/runs/job-7/heartbeat", "POST"],
    ["GET", "/v1/batches/a", "DELETE"],
  ])("%s %s has no such method, and says which it has", async (method, path, allow) => {
    const answer = await createTestApp().app.request(path, { method });
    expect(answer.status).toBe(405);
    expect(answer.headers.get("allow")).toBe(allow);
    expect(await readProblem(answer)).toMatchObject({ code: "method_not_allowed" });
  });

  it("lives without touching anything", async () => {
    const { app } = createTestApp({ probeReadiness: () => Promise.reject(new Error("touched")) });
    const answer = await app.request("/healthz");
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ status: "ok" });
    expect((await app.request("/healthz", { method: "HEAD" })).status).toBe(200);
  });

  it.each([
    [true, 200, "ok"],
    [false, 503, "unavailable"],
  ])("is ready: %s", async (isReady, status, word) => {
    const checks = { table: "ok", pool: { slots: 2 } };
    const { app } = createTestApp({ probeReadiness: async () => ({ isReady, checks }) });
    const answer = await app.request("/readyz", { headers: jsonHeaders });
    expect(answer.status).toBe(status);
    expect(await answer.json()).toEqual({ status: word, checks });
  });

  it("shows its description to readers", async () => {
    const answer = await createTestApp().app.request("/docs");
    expect(answer.headers.get("content-type")).toContain("text/html");
    expect(await answer.text()).toContain("/openapi.json");
  });
});

describe("an unexpected error", () => {
  it("is logged with the request's id, and told to nobody", async () => {
    const cause = new Error("the password is hunter2");
    const testApp = createTestApp({ gradeBatch: () => Promise.reject(cause) });
    const answer = await post(testApp, rightRequest(), { "x-request-id": "mine" });
    expect(answer.status).toBe(500);
    const problem = await readProblem(answer);
    expect(problem).toMatchObject({ code: "internal", request_id: "mine", errors: [] });
    expect(JSON.stringify(problem)).not.toContain("hunter2");
    expect(testApp.logged).toEqual([
      { level: "error", message: "request failed", requestId: "mine", code: "internal", cause },
    ]);
  });
});

/** As much of an OpenAPI document as is looked at here. */
interface Described {
  openapi: string;
  paths: Record<
    string,
    Record<
      string,
      {
        responses: Record<string, { description?: string; content?: Record<string, unknown> }>;
        parameters?: { name: string; description?: string }[];
        security?: unknown;
      }
    >
  >;
  components: { schemas: Record<string, { example?: unknown; properties?: Record<string, unknown> }> };
}

describe("the description of the interface", () => {
  const read = async () => (await (await createTestApp().app.request("/openapi.json")).json()) as Described;

  it("is OpenAPI 3.1 and tells of every resource", async () => {
    const { openapi, paths } = await read();
    expect(openapi).toBe("3.1.0");
    const operations = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    expect(operations).toEqual([
      "post /v1/rewards",
      "delete /v1/batches/{key}",
      "get /v1/runs",
      "get /v1/runs/{id}",
      "put /v1/runs/{id}",
      "delete /v1/runs/{id}",
      "post /v1/runs/{id}/heartbeat",
      "get /healthz",
      "get /readyz",
    ]);
    expect(paths["/v1/rewards"]?.post?.security).toEqual([{ bearer: [] }]);
    expect(paths["/healthz"]?.get?.security).toBeUndefined();
  });

  it("tells of the header that makes a batch repeatable, and of its refusals", async () => {
    const { paths } = await read();
    const post = paths["/v1/rewards"]?.post;
    const header = post?.parameters?.find(({ name }) => name === "idempotency-key");
    expect(header).toMatchObject({ in: "header", required: false, schema: { minLength: 1, maxLength: 200 } });
    expect(header?.description).toContain("4 MiB");
    expect(post?.responses["409"]?.description).toContain("in_progress");
    expect(post?.responses["422"]?.description).toContain("idempotency_mismatch");
  });

  it("refers only to schemas that it has", async () => {
    const document = await read();
    const references = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g);
    const names = new Set([...references].map(([, name]) => name as string));
    expect(names.size).toBeGreaterThan(5);
    for (const name of names) expect(document.components.schemas).toHaveProperty([name]);
  });

  it("has the bounds that requests are held against", async () => {
    const { components } = await read();
    expect(components.schemas.Limits?.properties).toMatchObject({
      time_ms: { type: "integer", minimum: 10, maximum: 60_000, default: 2_000 },
      memory_mib: { minimum: 32, maximum: 448, default: 192 },
      output_bytes: { minimum: 1, maximum: 1_048_576, default: 65_536 },
    });
    expect(components.schemas.RewardsRequest?.properties).toMatchObject({
      samples: { minItems: 1, maxItems: 10_000 },
    });
  });

  it("gives no test case more memory by default than its workers have", async () => {
    const app = createApp({ ...depsOf(), config: { ...depsOf().config, maxMemoryMib: 100 } });
    const { components } = (await (await app.request("/openapi.json")).json()) as Described;
    expect(components.schemas.Limits?.properties?.memory_mib).toMatchObject({ maximum: 100, default: 100 });
  });

  it("has an example of a request that works as it stands", async () => {
    const { components } = await read();
    const example = components.schemas.RewardsRequest?.example;
    expect(example).toEqual(requestExample);
    const answer = await post(createTestApp({ script: () => ({ kind: "print", stdout: "6" }) }), example);
    const body = RewardsAnswer.parse(await answer.json());
    expect(body.rewards).toEqual(answerExample.rewards);
    expect(body.results?.map((result) => Object.keys(result))).toEqual(
      answerExample.results.map((result) => Object.keys(result)),
    );
  });

  it("has an example of an answer that fits its own schema", async () => {
    const { paths } = await read();
    const ok = paths["/v1/rewards"]?.post?.responses["200"]?.content?.["application/json"] as {
      example: unknown;
    };
    expect(RewardsAnswer.parse(ok.example)).toEqual(answerExample);
  });

  it("describes problems as they are", async () => {
    const answer = await post(createTestApp(), { samples: [] });
    expect(ProblemAnswer.parse(await answer.json())).toMatchObject({
      type: "urn:code-rewards:problem:invalid_request",
      title: expect.any(String),
      status: 422,
    });
  });
});
