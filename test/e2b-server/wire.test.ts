import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type E2bServer, startE2bServer } from "../../functions/local/e2b/server.ts";

// What the official clients don't show: bodies, refusals, and the frames of a stream, as they are on the wire.

const KEY = { "x-api-key": "e2b_test" };
let server: E2bServer;
let sandbox: { sandboxID: string; envdAccessToken: string };

beforeAll(async () => {
  server = await startE2bServer({
    apiKey: "e2b_test",
    plan: { createsPerSecond: 1000, concurrentSandboxes: 130 },
    cpuCount: 2,
  });
  const response = await api("POST", "/sandboxes", { templateID: "base", timeout: 120 });
  sandbox = (await response.json()) as typeof sandbox;
}, 30_000);

afterAll(() => server.close());

function api(method: string, path: string, body?: unknown, headers: Record<string, string> = KEY) {
  const text = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body);
  return fetch(`${server.apiUrl}${path}`, { method, body: text, headers });
}

function envd(path: string, body: string | Buffer, headers: Record<string, string> = {}) {
  return fetch(`${server.sandboxUrl}${path}`, {
    method: "POST",
    body: body as string,
    headers: {
      "e2b-sandbox-id": sandbox.sandboxID,
      "e2b-sandbox-port": "49983",
      "x-access-token": sandbox.envdAccessToken,
      "content-type": "application/json",
      ...headers,
    },
  });
}

const STREAM = { "content-type": "application/connect+json" };

function envelope(message: unknown): Buffer {
  const data = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

async function readEnvelopes(response: Response): Promise<[flags: number, message: unknown][]> {
  let rest = Buffer.from(await response.arrayBuffer());
  const found: [number, unknown][] = [];
  while (rest.length > 0) {
    const end = 5 + rest.readUInt32BE(1);
    found.push([rest[0] ?? -1, JSON.parse(rest.subarray(5, end).toString())]);
    rest = rest.subarray(end);
  }
  return found;
}

const start = (script: string, extra = {}) =>
  envelope({ process: { cmd: "/bin/sh", args: ["-c", script], envs: {} }, stdin: false, ...extra });

describe("REST", () => {
  it.each([
    ["GET", "/templates", undefined],
    ["POST", "/sandboxes/{id}/snapshots", {}],
    ["GET", "/sandboxes/{id}/metrics", undefined],
    ["GET", "/v2/sandboxes?order=asc", undefined],
    ["PUT", "/sandboxes/{id}/network", {}],
    ["POST", "/v2/sandboxes", { templateID: "base", volumeMounts: [] }],
    ["POST", "/v2/sandboxes", { templateID: "base", network: { rules: {} } }],
    ["POST", "/v2/sandboxes", { templateID: "base", autoPause: true, autoPauseMemory: false }],
    ["POST", "/v2/sandboxes/{id}/connect", { memory: false }],
    ["POST", "/v2/sandboxes", { templateID: "base", autoResume: { enabled: true } }],
  ])("%s %s is not guessed at: 501", async (method, path, body) => {
    const response = await api(method, path.replace("{id}", sandbox.sandboxID), body);
    expect(response.status).toBe(501);
    expect(await response.json()).toEqual({ code: 501, message: expect.stringContaining("not implemented") });
  });

  it.each([
    ["no template", {}],
    ["a timeout of text", { templateID: "base", timeout: "60" }],
    ["metadata of numbers", { templateID: "base", metadata: { a: 1 } }],
    ["not JSON", "{"],
    ["not an object", "[]"],
  ])("a creation with %s is 400", async (_name, body) => {
    const response = await api("POST", "/v2/sandboxes", body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ code: 400 });
  });

  it.each([{}, { "x-api-key": "another" }])("without the key it is 401: %j", async (headers) => {
    const response = await api("GET", "/v2/sandboxes", undefined, headers as Record<string, string>);
    expect(response.status).toBe(401);
    expect(await response.json()).toEqual({ code: 401, message: "Invalid API key" });
  });

  it("tells of a sandbox what was asked for and what it got", async () => {
    const response = await api("GET", `/sandboxes/${sandbox.sandboxID}`);
    expect(await response.json()).toMatchObject({
      sandboxID: sandbox.sandboxID,
      envdAccessToken: sandbox.envdAccessToken,
      state: "running",
      cpuCount: 2,
      memoryMB: 512,
      envdVersion: "0.6.13",
      metadata: {},
      lifecycle: { onTimeout: "kill" },
      domain: null,
    });
  });

  it("lists 120 real sandboxes in pages of 100, newest first, and each of them runs", async () => {
    const creations = Array.from({ length: 120 }, () =>
      api("POST", "/v2/sandboxes", { templateID: "base", timeout: 120, metadata: { batch: "120" } }),
    );
    const made = await Promise.all(
      creations.map(async (creation) => (await creation).json() as Promise<typeof sandbox>),
    );
    const first = await api("GET", "/v2/sandboxes?metadata=batch%3D120");
    const token = first.headers.get("x-next-token");
    const second = await api("GET", `/v2/sandboxes?metadata=batch%3D120&limit=500&nextToken=${token}`);
    const pages = (await Promise.all([first.json(), second.json()])) as {
      sandboxID: string;
      startedAt: string;
    }[][];
    expect(pages.map((page) => page.length)).toEqual([100, 20]);
    expect(second.headers.get("x-next-token")).toBeNull();
    const listed = pages.flat();
    expect(new Set(listed.map((item) => item.sandboxID))).toEqual(
      new Set(made.map((item) => item.sandboxID)),
    );
    const starts = listed.map((item) => item.startedAt);
    expect(starts).toEqual([...starts].sort().reverse());
    const runs = made.map(async (item) => {
      const headers = { "e2b-sandbox-id": item.sandboxID, "x-access-token": item.envdAccessToken };
      return readEnvelopes(await envd("/process.Process/Start", start("echo $$"), { ...STREAM, ...headers }));
    });
    for (const frames of await Promise.all(runs)) {
      expect(frames.at(-2)?.[1]).toEqual({ event: { end: { exited: true, status: "exit status 0" } } });
    }
    const kills = await Promise.all(made.map((item) => api("DELETE", `/sandboxes/${item.sandboxID}`)));
    expect(kills.every((kill) => kill.status === 204)).toBe(true);
    expect(server.sandboxCounts()).toEqual({ running: 1, paused: 0 });
  }, 60_000);

  it("counts requests by kind", async () => {
    const kind = "GET /sandboxes/{id}";
    const before = server.requestCounts()[kind] ?? 0;
    await api("GET", `/sandboxes/${sandbox.sandboxID}`);
    expect(server.requestCounts()[kind]).toBe(before + 1);
  });
});

describe("the inner service", () => {
  it("streams start, outputs, end and the last frame", async () => {
    const response = await envd("/process.Process/Start", start("printf hi; printf no >&2; exit 3"), STREAM);
    expect(response.headers.get("content-type")).toBe("application/connect+json");
    const frames = await readEnvelopes(response);
    expect(frames[0]).toEqual([0, { event: { start: { pid: expect.any(Number) } } }]);
    expect(frames).toContainEqual([0, { event: { data: { stdout: "aGk=" } } }]);
    expect(frames).toContainEqual([0, { event: { data: { stderr: "bm8=" } } }]);
    expect(frames.slice(-2)).toEqual([
      [0, { event: { end: { exitCode: 3, exited: true, status: "exit status 3", error: "exit status 3" } } }],
      [2, {}],
    ]);
  });

  it("ends a stream by its time limit with an error and no end event", async () => {
    const headers = { ...STREAM, "connect-timeout-ms": "200" };
    const frames = await readEnvelopes(await envd("/process.Process/Start", start("sleep 60"), headers));
    expect(frames).toHaveLength(2);
    expect(frames[1]).toEqual([2, { error: { code: "deadline_exceeded", message: expect.any(String) } }]);
  });

  it("pings while nothing else happens", async () => {
    const headers = { ...STREAM, "keepalive-ping-interval": "1" };
    const frames = await readEnvelopes(await envd("/process.Process/Start", start("sleep 2"), headers));
    expect(frames[1]).toEqual([0, { event: { keepalive: {} } }]);
  });

  it.each([
    ["a missing folder", start("true", { process: { cmd: "/bin/true", cwd: "/zzz" } }), "invalid_argument"],
    ["a missing program", start("true", { process: { cmd: "/bin/zzz" } }), "invalid_argument"],
    ["a terminal", start("true", { pty: { size: { cols: 80, rows: 24 } } }), "unimplemented"],
    ["no process", envelope({}), "invalid_argument"],
    ["no envelope", Buffer.from("{}"), "invalid_argument"],
  ])("refuses %s in the last frame", async (_name, body, code) => {
    const frames = await readEnvelopes(await envd("/process.Process/Start", body, STREAM));
    expect(frames).toEqual([[2, { error: { code, message: expect.any(String) } }]]);
  });

  it.each([
    ["/filesystem.Filesystem/WatchDir", "{}", 501, "unimplemented"],
    ["/metrics", "", 501, "unimplemented"],
    ["/process.Process/SendSignal", '{"process":{"pid":99999},"signal":"SIGNAL_SIGKILL"}', 404, "not_found"],
    ["/filesystem.Filesystem/Stat", '{"path":"/zzz"}', 404, "not_found"],
    ["/filesystem.Filesystem/Stat", "{", 400, "invalid_argument"],
    ["/filesystem.Filesystem/MakeDir", '{"path":"/tmp"}', 409, "already_exists"],
    ["/filesystem.Filesystem/MakeDir", '{"path":"/usr/zzz"}', 500, "internal"],
  ])("answers %s %s with %i", async (path, body, status, code) => {
    const response = await envd(path, body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({ code });
  });

  it("asks for its token everywhere but at /health", async () => {
    const without = { "x-access-token": "" };
    expect((await envd("/health", "", without)).status).toBe(204);
    for (const path of ["/process.Process/List", "/files?path=/tmp/x", "/nothing"]) {
      const response = await envd(path, "{}", without);
      expect(response.status).toBe(401);
      expect(await response.json()).toMatchObject({ code: 401 });
    }
  });

  it.each([
    [{ "e2b-sandbox-id": "" }, 400],
    [{ "e2b-sandbox-port": "http" }, 400],
    [{ "e2b-sandbox-port": "0" }, 400],
    [{ "e2b-sandbox-id": "inobody" }, 502],
  ])("routing by %j is %i", async (headers, status) => {
    expect((await envd("/health", "", headers)).status).toBe(status);
  });

  it("closes a connection whose peer closes it, and the caller sees it", async () => {
    const script =
      "import socket; s = socket.create_server(('127.0.0.1', 7001)); print('up', flush=True); s.accept()[0].close()";
    const command = envelope({
      process: { cmd: "/usr/bin/env", args: ["python3", "-c", script] },
      stdin: false,
    });
    const process = await envd("/process.Process/Start", command, STREAM);
    const reader = process.body?.getReader();
    let seen = "";
    while (!seen.includes(Buffer.from("up\n").toString("base64"))) {
      seen += Buffer.from((await reader?.read())?.value ?? []).toString();
    }
    await expect(envd("/", "x", { "e2b-sandbox-port": "7001" })).rejects.toThrow("fetch failed");
    await reader?.cancel();
  });
});
