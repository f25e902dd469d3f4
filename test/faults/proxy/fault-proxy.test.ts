/** The faults that the proxy makes are the ones that happen, and it knows which did. */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Fault } from "./fault.ts";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.ts";
import { draw, type Match } from "./rules.ts";

const startedAt = "2030-01-01T00:00:00.000Z";
const longText = "0123456789".repeat(20);

/** A service that says what it was sent; `/stream` answers in two pieces, the second when it is told. */
async function startService() {
  const seen: { method: string; url: string; body: string; headers: http.IncomingHttpHeaders }[] = [];
  const callersGone: string[] = [];
  let goOn = () => {};
  const server = http.createServer(async (request, response) => {
    const body = (await buffer(request)).toString();
    const { method = "", url = "", headers } = request;
    seen.push({ method, url, body, headers });
    response.on("close", () => response.writableFinished || callersGone.push(url));
    if (url === "/break") return void response.destroy();
    if (url !== "/stream") {
      response.setHeader("x-served", String(seen.length));
      return void response.end(JSON.stringify({ startedAt, longText, served: seen.length }));
    }
    response.write("first;");
    goOn = () => response.end("second");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    callersGone,
    goOn: () => goOn(),
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

let service: Awaited<ReturnType<typeof startService>>;
let proxy: FaultProxy;

beforeEach(async () => {
  service = await startService();
  proxy = await startFaultProxy({ control: service.url, sandbox: service.url, table: service.url, seed: 7 });
});
afterEach(async () => {
  await proxy.close();
  service.close();
});

interface Call {
  readonly url?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  /** When the caller gives up. */
  readonly limitMs?: number;
}

/** What the caller of a request sees: its status and text, what of it came, or how the connection failed. */
async function call({ url = "/x", method = "GET", headers = {}, body, limitMs = 5_000 }: Call = {}) {
  const sent = http.request(proxy.controlUrl + url, { method, headers, agent: false });
  sent.on("error", () => {}); // also after its answer has begun
  const limit = setTimeout(() => sent.destroy(new Error("gave up")), limitMs);
  sent.end(body);
  try {
    const [reply] = (await once(sent, "response")) as [http.IncomingMessage];
    const pieces: Buffer[] = [];
    let cut = false;
    try {
      for await (const piece of reply) pieces.push(piece);
    } catch {
      cut = true;
    }
    return { status: reply.statusCode, headers: reply.headers, text: Buffer.concat(pieces).toString(), cut };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { failed: code ?? message };
  } finally {
    clearTimeout(limit);
  }
}

function add(fault: Fault, match: Match = {}) {
  return proxy.add({ path: "control", fault, match });
}

async function poll(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!(await condition())) {
    if (performance.now() > deadlineMs) throw new Error("it never came true");
    await sleep(5);
  }
}

describe("without a rule", () => {
  it("requests and answers pass as they are", async () => {
    const { status, headers, text } = (await call({
      url: "/things?a=%20b",
      method: "POST",
      headers: { "x-mine": "1", "content-type": "text/plain" },
      body: "hällo",
    })) as { status: number; headers: Record<string, string>; text: string };
    expect(service.seen).toMatchObject([
      { method: "POST", url: "/things?a=%20b", body: "hällo", headers: { "x-mine": "1" } },
    ]);
    expect({ status, served: headers["x-served"] }).toEqual({ status: 200, served: "1" });
    expect(JSON.parse(text)).toMatchObject({ longText });
    expect(proxy.requests).toMatchObject([
      { path: "control", method: "POST", status: 200, answer: text, body: "hällo", injected: null },
    ]);
    expect(proxy.injected).toEqual([]);
  });

  it("the pieces of a stream come as they are written", async () => {
    const answer = await fetch(`${proxy.controlUrl}/stream`);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("first;");
    service.goOn();
    expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe("second");
  });

  it("a caller who leaves takes the request along", async () => {
    expect(await call({ url: "/stream", limitMs: 100 })).toMatchObject({ text: "first;", cut: true });
    await poll(() => service.callersGone.length === 1);
    expect(proxy.requests[0]?.serviceFailed).toBe(false);
  });

  it("a service that breaks off is told from a fault of the proxy's", async () => {
    expect(await call({ url: "/break" })).toEqual({ failed: "ECONNRESET" });
    expect(proxy.requests).toMatchObject([{ serviceFailed: true, injected: null }]);
  });
});

describe("a fault", () => {
  it.each<{ fault: Fault; call?: Call; sees: object; served: number }>([
    {
      fault: { kind: "answer", status: 429, headers: { "retry-after": "3" } },
      sees: {
        status: 429,
        headers: { "retry-after": "3" },
        text: '{"code":429,"message":"the proxy says 429"}',
      },
      served: 0,
    },
    {
      fault: { kind: "answer", status: 502, body: "<html>" },
      sees: { status: 502, text: "<html>" },
      served: 0,
    },
    { fault: { kind: "answer_after", status: 500 }, sees: { status: 500 }, served: 1 },
    { fault: { kind: "reset_before" }, sees: { failed: "ECONNRESET" }, served: 0 },
    { fault: { kind: "reset_after" }, sees: { failed: "ECONNRESET" }, served: 1 },
    { fault: { kind: "cut", afterBytes: 0 }, sees: { status: 200, text: "", cut: true }, served: 1 },
    { fault: { kind: "cut", afterBytes: 9 }, sees: { text: '{"started', cut: true }, served: 1 },
    { fault: { kind: "hang_before" }, call: { limitMs: 100 }, sees: { failed: "gave up" }, served: 0 },
    { fault: { kind: "hang_after" }, call: { limitMs: 100 }, sees: { failed: "gave up" }, served: 1 },
    { fault: { kind: "drip", bytes: 100, everyMs: 10 }, sees: { status: 200, cut: false }, served: 1 },
    { fault: { kind: "delay", ms: 50 }, sees: { status: 200 }, served: 1 },
    { fault: { kind: "late_answer", ms: 50 }, sees: { status: 200 }, served: 1 },
    {
      fault: { kind: "late_answer", ms: 5_000 },
      call: { limitMs: 200 },
      sees: { failed: "gave up" },
      served: 1,
    },
    { fault: { kind: "late_request", ms: 50 }, sees: { status: 200 }, served: 1 },
    { fault: { kind: "twice", answered: "first" }, sees: { headers: { "x-served": "1" } }, served: 2 },
    { fault: { kind: "twice", answered: "second" }, sees: { headers: { "x-served": "2" } }, served: 2 },
    {
      fault: { kind: "skew", offsetMs: -86_400_000 },
      sees: { text: expect.stringContaining('"startedAt":"2029-12-31T00:00:00.000Z"') },
      served: 1,
    },
    {
      fault: { kind: "rewrite", body: (text) => text.slice(0, 12) + text.slice(0, 12) },
      sees: { text: '{"startedAt"{"startedAt"', cut: false },
      served: 1,
    },
  ])("$fault is what the caller sees, and is recorded", async ({ fault, call: how, sees, served }) => {
    const rule = add(fault);
    expect(await call(how)).toMatchObject(sees);
    await poll(() => service.seen.length === served && rule.injected.length === 1);
    expect(proxy.injected).toMatchObject([{ kind: fault.kind, rule: `control ${fault.kind}` }]);
    expect(proxy.requests).toMatchObject([{ injected: fault.kind }]);
    expect(proxy.injectedCounts()).toEqual({ [`control ${fault.kind}`]: 1 });
  });

  it("that could not happen is not recorded", async () => {
    const rule = add({ kind: "cut", afterBytes: 10_000 });
    expect(await call()).toMatchObject({ status: 200, cut: false });
    expect(rule.injected).toEqual([]);
  });

  it("cuts a stream in its middle", async () => {
    add({ kind: "cut", afterBytes: 8 });
    const sees = call({ url: "/stream" });
    await poll(() => service.seen.length === 1 && proxy.requests[0]?.answer === "first;");
    service.goOn();
    expect(await sees).toMatchObject({ text: "first;se", cut: true });
  });

  it("moves the service's clock in its headers too", async () => {
    add({ kind: "skew", offsetMs: 3_600_000 });
    const { headers } = (await call()) as { headers: { date: string } };
    expect(Math.abs(Date.parse(headers.date) - Date.now() - 3_600_000)).toBeLessThan(60_000);
  });

  it("that comes late reaches the service though the caller has given up", async () => {
    add({ kind: "late_request", ms: 200 });
    expect(await call({ limitMs: 50 })).toEqual({ failed: "gave up" });
    expect(service.seen).toEqual([]);
    await poll(() => service.seen.length === 1);
  });

  it("that only delays does not reach it then", async () => {
    add({ kind: "delay", ms: 200 });
    add({ kind: "answer", status: 500 }, { url: "/later" });
    expect(await call({ limitMs: 50 })).toEqual({ failed: "gave up" });
    await sleep(300); // a thing that must not happen has no condition to poll
    expect(service.seen).toEqual([]);
  });

  it("that hangs ends with the proxy, and nothing is forwarded after that", async () => {
    add({ kind: "hang_before" }, { nth: 1 });
    add({ kind: "late_request", ms: 60_000 });
    const calls = Promise.all([call(), call()]);
    await poll(async () => (await proxy.openConnections()) === 2 && proxy.injected.length === 2);
    await proxy.close();
    expect(await calls).toEqual([{ failed: "ECONNRESET" }, { failed: "ECONNRESET" }]);
    expect(service.seen).toEqual([]);
  });
});

describe("a rule", () => {
  const refuse: Fault = { kind: "answer", status: 500 };
  const statuses = async (calls: readonly Call[]) => {
    const seen: number[] = [];
    for (const one of calls) seen.push(((await call(one)) as { status: number }).status);
    return seen;
  };
  const four: Call[] = [{}, {}, {}, {}];

  it.each<{ match: Match; calls?: Call[]; sees: number[] }>([
    { match: {}, sees: [500, 500, 500, 500] },
    { match: { nth: 2 }, sees: [200, 500, 200, 200] },
    { match: { nth: [1, 4] }, sees: [500, 200, 200, 500] },
    { match: { nth: { from: 3 } }, sees: [200, 200, 500, 500] },
    { match: { nth: { from: 2, to: 3 } }, sees: [200, 500, 500, 200] },
    { match: { windowMs: [0, 60_000] }, sees: [500, 500, 500, 500] },
    { match: { windowMs: [60_000, 70_000] }, sees: [200, 200, 200, 200] },
    { match: { probability: 0 }, sees: [200, 200, 200, 200] },
    { match: { probability: 1 }, sees: [500, 500, 500, 500] },
    { match: { until: () => service.seen.length === 0 }, sees: [200, 200, 200, 200] },
    { match: { method: "POST" }, calls: [{}, { method: "POST" }], sees: [200, 500] },
    { match: { url: "/a" }, calls: [{ url: "/a?b" }, { url: "/ab" }], sees: [500, 200] },
    { match: { url: /\?b$/ }, calls: [{ url: "/a?b" }, { url: "/ab" }], sees: [500, 200] },
    { match: { body: /magic/ }, calls: [{ method: "POST", body: "magic" }, {}], sees: [500, 200] },
    {
      match: { where: ({ headers }) => headers.a === "1" },
      calls: [{ headers: { a: "1" } }, {}],
      sees: [500, 200],
    },
    {
      match: { method: "POST", nth: 1 },
      calls: [{}, { method: "POST" }, { method: "POST" }],
      sees: [200, 500, 200],
    },
  ])("of $match strikes where it says", async ({ match, calls = four, sees }) => {
    add(refuse, match);
    expect(await statuses(calls)).toEqual(sees);
  });

  it("is over for good once its end has come", async () => {
    let over = false;
    add(refuse, { until: () => over });
    expect(await statuses([{}])).toEqual([500]);
    over = true;
    expect(await statuses([{}])).toEqual([200]);
    over = false;
    expect(await statuses([{}])).toEqual([200]);
  });

  it("has the luck of its seed, name and count", async () => {
    const struck = Array.from({ length: 2_000 }, (_, i) => draw(`7 control answer ${i + 1}`) < 0.3);
    expect(struck.filter(Boolean).length / struck.length).toBeCloseTo(0.3, 1);
    add(refuse, { probability: 0.3 });
    const seen = await statuses(Array.from({ length: 20 }, () => ({})));
    expect(seen).toEqual(struck.slice(0, 20).map((isStruck) => (isStruck ? 500 : 200)));
  });

  it("may choose by the request, and is told its count", async () => {
    proxy.add({
      name: "every other",
      path: ["control", "table"],
      fault: async (_, nth) => (nth % 2 === 0 ? refuse : null),
    });
    expect(await statuses(four)).toEqual([200, 500, 200, 500]);
    expect(proxy.injected.map(({ rule }) => rule)).toEqual(["every other", "every other"]);
    expect(proxy.injectedCounts()).toEqual({ "control answer": 2 });
  });

  it("comes after those that were added before, until it is removed", async () => {
    const first = add({ kind: "answer", status: 501 });
    add({ kind: "answer", status: 502 });
    expect(await statuses([{}])).toEqual([501]);
    first.remove();
    expect(await statuses([{}])).toEqual([502]);
    proxy.clear();
    expect(await statuses([{}])).toEqual([200]);
  });

  it.each<{ path: string; from: () => string; headers: Record<string, string>; operation: string | null }>([
    { path: "control", from: () => proxy.controlUrl, headers: {}, operation: null },
    { path: "envd", from: () => proxy.sandboxUrl, headers: { "E2b-Sandbox-Port": "49983" }, operation: null },
    {
      path: "supervisor",
      from: () => proxy.sandboxUrl,
      headers: { "E2b-Sandbox-Port": "8000" },
      operation: null,
    },
    {
      path: "table",
      from: () => proxy.tableUrl,
      headers: { "x-amz-target": "DynamoDB_20120810.GetItem" },
      operation: "GetItem",
    },
  ])("of the path $path concerns that one only", async ({ path, from, headers, operation }) => {
    const rules = (["control", "envd", "supervisor", "table"] as const).map((each) =>
      proxy.add({ path: each, fault: refuse, match: operation === null ? {} : { operation } }),
    );
    const withId = path === "control" || path === "table" ? headers : { ...headers, "E2b-Sandbox-Id": "abc" };
    expect((await fetch(`${from()}/sandboxes/abc/timeout`, { headers: withId })).status).toBe(500);
    expect(rules.flatMap(({ injected }) => injected.map(({ request }) => request.path))).toEqual([path]);
    expect(proxy.requests).toMatchObject([{ path, operation, sandboxId: path === "table" ? null : "abc" }]);
    expect(proxy.counts()).toEqual({ control: 0, envd: 0, supervisor: 0, table: 0, [path]: 1 });
  });
});
