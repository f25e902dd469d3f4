/** No secret leaves by what is answered, thrown, printed, or visible inside a sandbox. */
import { inspect } from "node:util";
import { Sandbox } from "e2b";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type E2bOptions, resolveE2bOptions } from "../../functions/adapters/e2b-options.ts";
import { redact } from "../../functions/adapters/e2b-redaction.ts";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import { connectionTo, readAccess } from "../../functions/adapters/worker-access.ts";
import type { Fault, SeenRequest } from "../faults/proxy/fault.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import {
  addressFrom,
  collect,
  doublingChunk,
  factoryFor,
  hastyClock,
  never,
  newOrder,
  startRoomyServer,
  sweep,
  type TestServer,
} from "./cloud.ts";

const apiKey = "e2b_0123456789abcdef0123456789abcdef01234567";
const order = newOrder();
const printed: string[] = [];
let server: TestServer;
let proxy: FaultProxy;
let e2b: E2bOptions;

beforeAll(async () => {
  server = await startRoomyServer(apiKey, (line) => printed.push(line));
  const { apiUrl: control, sandboxUrl: sandbox } = server.target;
  proxy = await startFaultProxy({ control, sandbox });
  e2b = { apiKey, apiUrl: proxy.controlUrl, sandboxUrl: proxy.sandboxUrl, sandboxRequestTimeoutMs: 1_000 };
  for (const stream of [process.stdout, process.stderr]) {
    const write = stream.write.bind(stream) as (...given: unknown[]) => boolean;
    vi.spyOn(stream, "write").mockImplementation(((...given: unknown[]) => {
      printed.push(String(given[0]));
      return write(...given);
    }) as typeof stream.write);
  }
});
afterAll(async () => {
  vi.restoreAllMocks();
  await Promise.all([proxy?.close(), server?.stop()]);
});
afterEach(async () => {
  proxy.clear();
  await sweep(e2b, order.poolId);
});

/** Everything that whoever gets a value, or an error, could print of it. */
const everythingOf = (value: unknown): string =>
  [inspect(value, { depth: 20, showHidden: true }), JSON.stringify(value), String(value)].join("\n");

const isInside = ({ url }: SeenRequest) => url === "/process.Process/Start" || url.startsWith("/files");

/** Every secret that a request carried, sent back in its refusal. */
function echo(request: SeenRequest): string {
  const told = ["x-api-key", "authorization", "e2b-traffic-access-token", "x-access-token"]
    .map((name) => request.headers[name])
    .concat(request.body);
  return JSON.stringify({ code: 400, message: `you said ${told.join(" and ")}` });
}

/** The secrets that requests carried since the proxies were started. */
function secretsSeen(): string[] {
  const found = new Set([apiKey]);
  for (const { headers } of proxy.requests) {
    for (const name of ["x-access-token", "e2b-traffic-access-token"]) {
      if (typeof headers[name] === "string") found.add(headers[name]);
    }
    const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
    if (bearer !== undefined) found.add(bearer);
  }
  return [...found];
}

function expectNoSecret(text: string): void {
  const secrets = secretsSeen();
  expect(secrets.length).toBeGreaterThan(1);
  expect(secrets.filter((secret) => text.includes(secret))).toEqual([]);
}

describe("a worker's life", () => {
  it("shows its secret to nobody who looks into the sandbox, the row, or the logs", async () => {
    const created = addressFrom(await factoryFor(e2b).create(order, never));
    const worker = { ...order, ...created };
    const events = await collect(factoryFor(e2b).attach(worker).execute(doublingChunk("c"), 1, never));
    const { trafficToken } = readAccess(created.access);
    const secret = String(connectionTo(resolveE2bOptions(e2b), worker).headers.authorization).slice(7);
    expect(secretsSeen()).toEqual(expect.arrayContaining([secret, trafficToken]));
    const within = await lookInto(created.sandboxId);
    expect(within).toContain("--secret-file");
    expect(within).toMatch(/^drwx------ .* \.$/m);
    expect(within).not.toMatch(/ (secret|claimed)$/m);
    expectNoSecret([within, created.access, everythingOf(created), everythingOf(events)].join("\n"));
    expectNoSecret(printed.join("\n"));
  });
});

/** Command lines, environments and files that the supervisor left behind, as root of the sandbox sees them. */
async function lookInto(sandboxId: string): Promise<string> {
  const sandbox = await Sandbox.connect(sandboxId, { ...server.target, timeoutMs: 60_000 });
  const command =
    "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; ls -la /opt/code-rewards; grep -rh . /opt/code-rewards /tmp";
  const { stdout } = await sandbox.commands.run(command, { user: "root" }).catch((error) => error.result);
  return stdout;
}

describe("a failure", () => {
  it.each<{ what: string; plan: () => void }>([
    { what: "create a sandbox", plan: () => failWith((r) => r.method === "POST", 400) },
    { what: "create a sandbox, for want of rights", plan: () => failWith((r) => r.method === "POST", 401) },
    { what: "create a sandbox, too fast", plan: () => failWith((r) => r.method === "POST", 429) },
    { what: "bring files and command in", plan: () => failWith(isInside, 400) },
    { what: "bring files and command in, by a cut", plan: () => failWith(isInside, "reset_before") },
    { what: "reach the port", plan: () => failWith((r) => r.url === "/v1/health", 400) },
  ])("to $what tells none, whatever the server echoes", async ({ plan }) => {
    plan();
    const factory = factoryFor(e2b, { ...hastyClock, sleep: (_, signal) => hastyClock.sleep(60, signal) });
    const outcome = await factory.create(order, never);
    expect(outcome.kind).not.toBe("created");
    expectNoSecret(everythingOf(outcome));
    expectNoSecret(printed.join("\n"));
  });

  it("to kill, to renew, to list or to execute tells none, whatever the server echoes", async () => {
    const created = addressFrom(await factoryFor(e2b).create(order, never));
    failWith(() => true, 400);
    const sandboxes = createE2bSandboxes(e2b);
    const executor = factoryFor(e2b).attach({ ...order, ...created });
    const outcomes = await Promise.allSettled([
      sandboxes.kill(created.sandboxId),
      sandboxes.renew(created.sandboxId, 60_000),
      sandboxes.list(order.poolId),
      collect(executor.execute(doublingChunk("c"), 1, never)),
    ]);
    for (const outcome of outcomes) {
      expect(everythingOf(outcome)).toContain("Fault");
      expectNoSecret(everythingOf(outcome));
    }
    expectNoSecret(printed.join("\n"));
  });
});

function failWith(matches: (request: SeenRequest) => boolean, how: number | "reset_before"): void {
  const fault = (request: SeenRequest): Fault =>
    how === "reset_before" ? { kind: how } : { kind: "answer", status: how, body: echo(request) };
  proxy.add({ path: ["control", "envd", "supervisor"], match: { where: matches }, fault });
}

it.each([
  { text: "bad key e2b_local, sorry", free: "bad key [removed], sorry" },
  { text: "token deadbeefdeadbeefdeadbeef is bad", free: "token [removed] is bad" },
  { text: "two\nlines\u001b[31m", free: "two lines [31m" },
  { text: "word ".repeat(100), free: "word ".repeat(100).slice(0, 200) },
])("what another wrote is told without secrets, on one line, and shortly: $free", ({ text, free }) => {
  expect(redact(text, ["e2b_local", ""])).toBe(free);
});
