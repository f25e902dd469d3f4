/** What a command says when something that it needs is not there: soon, in one line, and with nothing started. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:net";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Hono } from "hono";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { type E2bServer, startE2bServer } from "../../functions/local/e2b/server.ts";
import type { HttpServer } from "../../functions/local/http-server.ts";
import { serveOnLoopback } from "./loopback.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const toldWithinMs = 10_000;
/** Less than the time for which an address is tried. */
const refusedWithinMs = 3_000;
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** What Node and its modules take to start. */
let startMs = 0;
beforeAll(async () => {
  const beganMs = performance.now();
  await start("main.ts", ["--help"], {});
  startMs = performance.now() - beganMs;
});

function start(script: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  return promisify(execFile)(process.execPath, ["--import", "tsx", `functions/local/${script}`, ...args], {
    cwd: root,
    env: { ...process.env, ...env },
    timeout: 60_000,
  });
}

/** `tookMs` is without `startMs`. */
async function run(script: string, args: readonly string[], env: Readonly<Record<string, string>>) {
  const beganMs = performance.now();
  const { code, stdout, stderr } = await start(script, args, env).then(
    (done) => ({ code: 0, ...done }),
    (failed) => failed as { code: number; stdout: string; stderr: string },
  );
  const tookMs = performance.now() - beganMs - startMs;
  return { code, stdout, lines: stderr.trim().split("\n"), tookMs };
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(async () => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** An address at which nothing listens. */
async function refusedAddress(): Promise<string> {
  const server = createServer();
  const url = await listen(server);
  server.close();
  return url;
}

const silentAddress = () => listen(createServer(() => {}));

async function startE2b(): Promise<E2bServer> {
  const e2b = await startE2bServer({ apiKey: "e2b_local" });
  closers.push(e2b.close);
  return e2b;
}

async function serve(app: Hono): Promise<HttpServer> {
  const server = await serveOnLoopback(app);
  closers.push(server.close);
  return server;
}

describe("an address at which nothing answers", () => {
  it.each([
    { script: "main.ts", variable: "E2B_API_URL", at: refusedAddress, why: "ECONNREFUSED" },
    { script: "smoke.ts", variable: "E2B_API_URL", at: refusedAddress, why: "ECONNREFUSED" },
    { script: "main.ts", variable: "E2B_API_URL", at: silentAddress, why: "no answer within 3 s" },
    {
      script: "main.ts",
      variable: "E2B_API_URL",
      at: async () => "http://nowhere.invalid",
      why: "ENOTFOUND",
    },
    { script: "main.ts", variable: "E2B_SANDBOX_URL", at: refusedAddress, why: "ECONNREFUSED" },
    { script: "main.ts", variable: "DYNAMODB_ENDPOINT", at: refusedAddress, why: "ECONNREFUSED" },
    { script: "smoke.ts", variable: "CODE_REWARDS_URL", at: refusedAddress, why: "ECONNREFUSED" },
  ])(
    "is told by $script within 10 s: $variable, $why",
    async ({ script, variable, at, why }) => {
      const url = await at();
      const others: Record<string, string> =
        variable === "E2B_SANDBOX_URL" ? { E2B_API_URL: (await startE2b()).apiUrl } : {};
      const env = { CODE_REWARDS_API_KEY: "k", ...others, [variable]: url };
      const { code, stdout, lines, tookMs } = await run(script, [], env);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      const said = lines.filter((line) => !/^starting an endpoint|^using the endpoint/.test(line));
      expect(said).toEqual([expect.stringContaining(`can't be reached at ${url} (`)]);
      expect(said[0]).toContain(why);
      expect(said[0]).toContain(`Check ${variable}.`);
      expect(tookMs).toBeLessThan(toldWithinMs);
    },
    60_000,
  );
});

describe("an address that is none", () => {
  it.each([
    { script: "main.ts", variable: "E2B_API_URL", slip: "localhost:3000", code: 1 },
    { script: "main.ts", variable: "E2B_API_URL", slip: "api.example.com", code: 1 },
    { script: "main.ts", variable: "E2B_SANDBOX_URL", slip: "ftp://localhost", code: 1 },
    { script: "main.ts", variable: "DYNAMODB_ENDPOINT", slip: "localhost:8000", code: 1 },
    { script: "main.ts", variable: "E2B_DOMAIN", slip: "https://e2b.app", code: 1, says: "a host's name" },
    { script: "smoke.ts", variable: "E2B_API_URL", slip: "localhost:3000", code: 1 },
    { script: "smoke.ts", variable: "CODE_REWARDS_URL", slip: "api.example.com", code: 2 },
    { script: "smoke.ts", variable: "CODE_REWARDS_URL", slip: "localhost:8787", code: 2 },
  ])(
    "is refused at once by $script: $variable=$slip",
    async ({
      script,
      variable,
      slip,
      code,
      says = "must be an address that begins with http:// or https://",
    }) => {
      const told = await run(script, [], { CODE_REWARDS_API_KEY: "k", [variable]: slip });
      expect({ code: told.code, stdout: told.stdout }).toEqual({ code, stdout: "" });
      const text = told.lines.join("\n");
      expect(text).toContain("environment: ");
      expect(text).toContain(says);
      expect(text).toContain(variable);
      expect(text).not.toMatch(/^ +at /m);
      expect(told.tookMs).toBeLessThan(refusedWithinMs);
    },
    60_000,
  );
});

it("a port in use is told before anything is started", async () => {
  const e2b = await startE2b();
  const { url } = await serve(new Hono());
  const env = { E2B_API_URL: e2b.apiUrl, E2B_SANDBOX_URL: e2b.sandboxUrl };
  const { code, stdout, lines } = await run("main.ts", ["--port", new URL(url).port], env);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(lines).toEqual(["The port is in use. Choose another with --port, or 0 for a free one."]);
  expect(Object.keys(e2b.requestCounts()).filter((what) => what === "POST /v2/sandboxes")).toEqual([]);
}, 60_000);

describe("npm run smoke", () => {
  const summary = {
    type: "summary",
    rewards: [1, null, 1 / 3, 0, 0],
    usage: { workers_created: 0, worker_seconds: 0, retries: 0 },
  };
  const fault = { code: "worker_lost", detail: "Its sandbox ended.", retryable: true };
  const endpoint = (grade: (c: import("hono").Context) => Response) =>
    new Hono()
      .put("/v1/runs/:id", (c) => c.json({}))
      .delete("/v1/runs/:id", (c) => c.json({ remaining_sandboxes: [] }))
      .post("/v1/rewards", grade);

  it("says why a reward is null, and fails", async () => {
    const results = summary.rewards.map((reward, index) => ({
      type: "result",
      index,
      reward,
      ...(reward === null ? { status: "fault", fault } : { status: "graded", verdicts: [] }),
    }));
    const body = [...results, summary].map((line) => `${JSON.stringify(line)}\n`).join("");
    const { url } = await serve(endpoint((c) => c.body(body)));
    const { code, lines } = await run("smoke.ts", [], { CODE_REWARDS_URL: url, CODE_REWARDS_API_KEY: "k" });
    expect(code).toBe(1);
    expect(lines).toContain("  wrong: null (worker_lost: Its sandbox ended.)");
    expect(lines).toContain("failed: wrong got null (worker_lost: Its sandbox ended.), not 0");
  }, 60_000);

  it("says in one line why it was refused", async () => {
    const problem = { code: "no_capacity", detail: "No worker is free.", status: 503 };
    const { url } = await serve(endpoint((c) => c.json(problem, 503)));
    const { code, lines } = await run("smoke.ts", [], { CODE_REWARDS_URL: url, CODE_REWARDS_API_KEY: "k" });
    expect(code).toBe(1);
    expect(lines.at(-1)).toBe("503: no_capacity: No worker is free.");
  }, 60_000);
});
