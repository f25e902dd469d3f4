/** Creating a worker while E2B, the network, or the sandbox itself fails on the way. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import { createE2bWorkerFactory } from "../../functions/adapters/e2b-worker-factory.ts";
import type { SupervisorFiles } from "../../functions/adapters/supervisor-files.ts";
import { type Fault, type SeenRequest, supervisorSays } from "../faults/proxy/fault.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import type { Rule } from "../faults/proxy/rules.ts";
import {
  addressFrom,
  collect,
  doublingChunk,
  factoryFor,
  hastyClock,
  never,
  newOrder,
  optionsFor,
  outputsOf,
  startRoomyServer,
  supervisor,
  sweep,
  type TestServer,
} from "./cloud.ts";

let server: TestServer;
let proxy: FaultProxy;
const order = newOrder();

beforeAll(async () => {
  server = await startRoomyServer();
  const { apiUrl: control, sandboxUrl: sandbox } = server.target;
  proxy = await startFaultProxy({ control, sandbox });
});
afterAll(async () => {
  await Promise.all([proxy?.close(), server?.stop()]);
});
afterEach(async () => {
  proxy.clear();
  await sweep(optionsFor(server), order.poolId);
});

const proxied = (changes = {}) =>
  optionsFor(server, {
    apiUrl: proxy.controlUrl,
    sandboxUrl: proxy.sandboxUrl,
    sandboxRequestTimeoutMs: 10_000,
    ...changes,
  });

/** A supervisor of other making, which says nothing unless its text does. */
const supervisorThat = (main: string): SupervisorFiles => ({
  ...supervisor,
  files: [{ name: "main.py", content: main }],
});

const createWith = (files: SupervisorFiles, readyTimeoutMs = 8_000) =>
  createE2bWorkerFactory({ e2b: proxied(), supervisor: files, readyTimeoutMs, clock: hastyClock }).create(
    order,
    never,
  );

const isFileWrite = ({ url }: SeenRequest) => url.startsWith("/files");
const isStart = ({ url }: SeenRequest) => url === "/process.Process/Start";
const isHealth = ({ url }: SeenRequest) => url === "/v1/health";

const failApi = (fault: Rule["fault"]) => proxy.add({ path: "control", fault });
const failInside = (fault: Rule["fault"]) => proxy.add({ path: ["envd", "supervisor"], fault });

/** Lets each kind of request suffer the accidents, one after the other, and pass from then on. */
function failFirst(accidents: readonly Fault[], ...kinds: ((request: SeenRequest) => boolean)[]): void {
  const next = new Map(kinds.map((kind) => [kind, 0]));
  failInside((request) => {
    const kind = kinds.find((matches) => matches(request));
    if (kind === undefined) return null;
    const at = next.get(kind) ?? 0;
    next.set(kind, at + 1);
    return accidents[at] ?? null;
  });
}

function failAlways(accident: Fault, kind: (request: SeenRequest) => boolean): void {
  failInside((request) => (kind(request) ? accident : null));
}

const starting = { state: "starting" };

function sayHealth(status: number, body: object): void {
  failInside((request) => (isHealth(request) ? supervisorSays(status, body)(request) : null));
}

const notRunning: Fault = {
  kind: "answer",
  status: 502,
  body: '{"message":"The sandbox was not found","code":502}',
};

describe("a step in a sandbox that fails at first", () => {
  it.each<{ accidents: Fault[] }>([
    {
      accidents: [
        { kind: "answer", status: 400 },
        { kind: "answer", status: 401 },
      ],
    },
    {
      accidents: [
        { kind: "answer", status: 403 },
        { kind: "answer", status: 404 },
      ],
    },
    {
      accidents: [
        { kind: "answer", status: 409 },
        { kind: "answer", status: 429 },
      ],
    },
    { accidents: [{ kind: "answer", status: 500 }, notRunning] },
    {
      accidents: [
        { kind: "answer", status: 503 },
        { kind: "answer", status: 504 },
      ],
    },
    { accidents: [{ kind: "reset_before" }, { kind: "cut", afterBytes: 10 }] },
    { accidents: [{ kind: "reset_after" }] },
    { accidents: [{ kind: "hang_before" }] },
    { accidents: [{ kind: "hang_after" }] },
  ])("by $accidents is done again until the worker is ready", async ({ accidents }) => {
    const isSilence = accidents.some(({ kind }) => kind === "hang_before" || kind === "hang_after");
    const options = proxied({ sandboxRequestTimeoutMs: isSilence ? 1_500 : 10_000 });
    failFirst(accidents, isFileWrite, isStart, isHealth);
    const created = addressFrom(await factoryFor(options, hastyClock).create(order, never));
    const executor = factoryFor(options).attach({ ...order, ...created });
    expect(outputsOf(await collect(executor.execute(doublingChunk("c"), 1, never)))).toEqual(["42\n", "8\n"]);
  });
});

const unprovedAs = (code: string) => ({
  kind: "unproved",
  sandboxId: expect.stringMatching(/^i\w+$/),
  fault: { name: "Fault", code },
});

describe("a worker that can't be brought up", () => {
  it.each<{ what: string; fails: (request: SeenRequest) => boolean; accident: Fault }>([
    { what: "files", fails: isFileWrite, accident: { kind: "answer", status: 429 } },
    { what: "files", fails: isFileWrite, accident: { kind: "reset_before" } },
    { what: "start", fails: isStart, accident: { kind: "answer", status: 503 } },
    { what: "start", fails: isStart, accident: notRunning },
  ])("because its $what always fails by $accident is unproved, not lost", async ({ fails, accident }) => {
    failAlways(accident, fails);
    const outcome = await createWith(supervisor);
    expect(outcome).toMatchObject(unprovedAs("sandbox_unavailable"));
    expect(outcome).toMatchObject({ fault: { message: expect.stringContaining("3 tries") } });
  });

  it("because its sandbox has gone says so, after asking for it", async () => {
    failInside(async (request) => {
      if (!isStart(request)) return null;
      await createE2bSandboxes(optionsFor(server)).kill(String(request.headers["e2b-sandbox-id"]));
      return null;
    });
    expect(await createWith(supervisor)).toMatchObject({
      ...unprovedAs("sandbox_unavailable"),
      fault: { message: "E2B could not start the supervisor: the sandbox is gone." },
    });
    expect(proxy.requests.filter(isStart).length).toBeGreaterThan(0);
  });

  it("because the key has lost its rights is a matter of configuration", async () => {
    failAlways({ kind: "answer", status: 401 }, isFileWrite);
    failApi(({ method }) => (method === "GET" ? { kind: "answer", status: 401 } : null));
    expect(await createWith(supervisor)).toMatchObject(unprovedAs("misconfigured"));
  });

  it("because isolation is not proved names the property and the remedy", async () => {
    const failed = [{ property: "seccomp", detail: "errno 22", remedy: "Use Linux 5.12." }];
    sayHealth(503, { state: "refused", failed });
    expect(await createWith(supervisor)).toMatchObject({
      ...unprovedAs("isolation_failed"),
      fault: {
        message: "A sandbox can't isolate programs. seccomp: errno 22. To do: Use Linux 5.12.",
        retryable: true,
      },
    });
  });

  it("because its supervisor never says that it is ready is not proved", async () => {
    sayHealth(503, starting);
    expect(await createWith(supervisor, 1_500)).toMatchObject(unprovedAs("isolation_failed"));
  });

  it("because its sandbox dies while it proves its isolation says nothing of its isolation", async () => {
    let asked = 0;
    failInside((request) => {
      if (!isHealth(request)) return null;
      asked += 1;
      return asked === 1 ? supervisorSays(503, starting)(request) : notRunning;
    });
    expect(await createWith(supervisor, 1_500)).toMatchObject({
      ...unprovedAs("sandbox_unavailable"),
      fault: { message: expect.stringContaining("status 502") },
    });
  });

  it("because its port never opens tells what the port said last", async () => {
    const outcome = await createWith(supervisorThat("import time\ntime.sleep(60)"), 1_500);
    expect(outcome).toMatchObject({
      ...unprovedAs("sandbox_unavailable"),
      fault: { message: expect.stringContaining("status 502") },
    });
  });

  it("because another supervisor answers is misconfigured", async () => {
    sayHealth(200, { state: "ready", version: "0123456789abcdef", slots: 1, fencing_token: 0 });
    expect(await createWith(supervisor)).toMatchObject(unprovedAs("misconfigured"));
  });

  it.each([
    {
      main: "import sys\nsys.exit('Python is too old')",
      says: /exit code 1 in its sandbox \(Python is too old\)/,
    },
    { main: "match = = 3", says: /SyntaxError/ },
    { main: "import os\nos._exit(127)", says: /found no python3.*Use a template that has Python 3\.9/ },
  ])("because its supervisor ends at once ($main) says why at once", async ({ main, says }) => {
    const outcome = await createWith(supervisorThat(main));
    expect(outcome).toMatchObject(unprovedAs("misconfigured"));
    if (outcome.kind !== "unproved") throw new Error(outcome.kind);
    expect(outcome.fault.message).toMatch(says);
    expect(outcome.fault.retryable).toBe(false);
  });

  it("because its supervisor was told to stop may be tried again", async () => {
    const outcome = await createWith(supervisorThat("raise SystemExit(0)"), 400);
    expect(outcome).toMatchObject({ ...unprovedAs("sandbox_unavailable"), fault: { retryable: true } });
  });

  it("because the creation is given up leaves a sandbox to kill", async () => {
    const patience = new AbortController();
    failInside((request) => {
      if (!isHealth(request)) return null;
      patience.abort();
      return { kind: "hang_before" };
    });
    expect(await factoryFor(proxied(), hastyClock).create(order, patience.signal)).toMatchObject({
      kind: "unproved",
      fault: { code: "sandbox_unavailable" },
    });
  });
});

it("a creation that E2B refuses is told as the sandboxes tell it", async () => {
  failApi(({ method }) => (method === "POST" ? { kind: "answer", status: 429 } : null));
  expect(await createWith(supervisor)).toMatchObject({ kind: "refused", reason: "throttled" });
});

describe("a creation that is answered with another one's sandbox", () => {
  const isCreation = ({ method, url }: SeenRequest) => method === "POST" && url === "/v2/sandboxes";

  it("has no sure end, and leaves the other one to its owner, who goes on to use it", async () => {
    const factory = factoryFor(proxied(), hastyClock);
    const first = { ...order, ...addressFrom(await factory.create(order, never)) };
    const body = proxy.requests.filter(isCreation).at(-1)?.answer ?? "";
    expect(body).toContain(first.sandboxId);
    failApi((request) => (isCreation(request) ? { kind: "answer_after", status: 201, body } : null));
    const second = await factory.create({ ...order, slot: order.slot + 1 }, never);
    expect(second).toMatchObject({ kind: "ambiguous", fault: { code: "sandbox_unavailable" } });
    proxy.clear();
    const run = factory.attach(first).execute(doublingChunk("after"), 1, never);
    expect(outputsOf(await collect(run))).toEqual(["42\n", "8\n"]);
    const listed = await createE2bSandboxes(proxied()).list(order.poolId);
    expect(listed.map(({ slot }) => slot).sort()).toEqual([order.slot, order.slot + 1]);
  });
});
