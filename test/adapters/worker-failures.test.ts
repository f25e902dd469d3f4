/** Creating a worker while E2B, the network, or the sandbox itself fails on the way. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import { createE2bWorkerFactory } from "../../functions/adapters/e2b-worker-factory.ts";
import type { SupervisorFiles } from "../../functions/adapters/supervisor-files.ts";
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
import { type Accident, type FaultyProxy, type SeenRequest, startFaultyProxy } from "./faulty-proxy.ts";

let server: TestServer;
let api: FaultyProxy;
let inside: FaultyProxy;
const order = newOrder();

beforeAll(async () => {
  server = await startRoomyServer();
  api = await startFaultyProxy(server.target.apiUrl);
  inside = await startFaultyProxy(server.target.sandboxUrl);
});
afterAll(async () => {
  await Promise.all([api?.close(), inside?.close(), server?.stop()]);
});
afterEach(async () => {
  api.plan = () => "pass";
  inside.plan = () => "pass";
  await sweep(optionsFor(server), order.poolId);
});

const proxied = (changes = {}) =>
  optionsFor(server, {
    apiUrl: api.url,
    sandboxUrl: inside.url,
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

const isFileWrite = ({ path }: SeenRequest) => path.startsWith("/files");
const isStart = ({ path }: SeenRequest) => path === "/process.Process/Start";
const isHealth = ({ path }: SeenRequest) => path === "/v1/health";

/** Lets each kind of request suffer the accidents, one after the other, and pass from then on. */
function failFirst(accidents: readonly Accident[], ...kinds: ((request: SeenRequest) => boolean)[]): void {
  const next = new Map(kinds.map((kind) => [kind, 0]));
  inside.plan = (request) => {
    const kind = kinds.find((matches) => matches(request));
    if (kind === undefined) return "pass";
    const at = next.get(kind) ?? 0;
    next.set(kind, at + 1);
    return accidents[at] ?? "pass";
  };
}

function failAlways(accident: Accident, kind: (request: SeenRequest) => boolean): void {
  inside.plan = (request) => (kind(request) ? accident : "pass");
}

const notRunning = { status: 502, body: '{"message":"The sandbox was not found","code":502}' };

describe("a step in a sandbox that fails at first", () => {
  it.each<{ accidents: Accident[] }>([
    { accidents: [{ status: 400 }, { status: 401 }] },
    { accidents: [{ status: 403 }, { status: 404 }] },
    { accidents: [{ status: 409 }, { status: 429 }] },
    { accidents: [{ status: 500 }, notRunning] },
    { accidents: [{ status: 503 }, { status: 504 }] },
    { accidents: ["reset_before", "cut_answer"] },
    { accidents: ["reset_after"] },
    { accidents: ["hang_before"] },
    { accidents: ["hang_after"] },
  ])("by $accidents is done again until the worker is ready", async ({ accidents }) => {
    const isSilence = accidents.some((accident) => accident === "hang_before" || accident === "hang_after");
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
  it.each<{ what: string; fails: (request: SeenRequest) => boolean; accident: Accident }>([
    { what: "files", fails: isFileWrite, accident: { status: 429 } },
    { what: "files", fails: isFileWrite, accident: "reset_before" },
    { what: "start", fails: isStart, accident: { status: 503 } },
    { what: "start", fails: isStart, accident: notRunning },
  ])("because its $what always fails by $accident is unproved, not lost", async ({ fails, accident }) => {
    failAlways(accident, fails);
    const outcome = await createWith(supervisor);
    expect(outcome).toMatchObject(unprovedAs("sandbox_unavailable"));
    expect(outcome).toMatchObject({ fault: { message: expect.stringContaining("3 tries") } });
  });

  it("because its sandbox has gone says so, after asking for it", async () => {
    inside.plan = async (request): Promise<Accident> => {
      if (!isStart(request)) return "pass";
      await createE2bSandboxes(optionsFor(server)).kill(String(request.headers["e2b-sandbox-id"]));
      return "pass";
    };
    expect(await createWith(supervisor)).toMatchObject({
      ...unprovedAs("sandbox_unavailable"),
      fault: { message: "E2B could not start the supervisor: the sandbox is gone." },
    });
    expect(inside.seen.filter(isStart).length).toBeGreaterThan(0);
  });

  it("because the key has lost its rights is a matter of configuration", async () => {
    failAlways({ status: 401 }, isFileWrite);
    api.plan = ({ method }) => (method === "GET" ? { status: 401 } : "pass");
    expect(await createWith(supervisor)).toMatchObject(unprovedAs("misconfigured"));
  });

  it("because isolation is not proved names the property and the remedy", async () => {
    inside.plan = (request) =>
      isHealth(request)
        ? {
            status: 503,
            body: '{"state":"refused","failed":[{"property":"seccomp","detail":"errno 22","remedy":"Use Linux 5.12."}]}',
          }
        : "pass";
    expect(await createWith(supervisor)).toMatchObject({
      ...unprovedAs("isolation_failed"),
      fault: {
        message: "A sandbox can't isolate programs. seccomp: errno 22. To do: Use Linux 5.12.",
        retryable: true,
      },
    });
  });

  it("because its supervisor never says that it is ready is not proved", async () => {
    inside.plan = (request) => (isHealth(request) ? { status: 503, body: '{"state":"starting"}' } : "pass");
    expect(await createWith(supervisor, 1_500)).toMatchObject(unprovedAs("isolation_failed"));
  });

  it("because its port never opens tells what the port said last", async () => {
    const outcome = await createWith(supervisorThat("import time\ntime.sleep(60)"), 1_500);
    expect(outcome).toMatchObject({
      ...unprovedAs("sandbox_unavailable"),
      fault: { message: expect.stringContaining("status 502") },
    });
  });

  it("because another supervisor answers is misconfigured", async () => {
    inside.plan = (request) =>
      isHealth(request)
        ? { status: 200, body: '{"state":"ready","version":"0123456789abcdef","slots":1,"fencing_token":0}' }
        : "pass";
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
    inside.plan = (request) => {
      if (!isHealth(request)) return "pass";
      patience.abort();
      return "hang_before";
    };
    expect(await factoryFor(proxied(), hastyClock).create(order, patience.signal)).toMatchObject({
      kind: "unproved",
      fault: { code: "sandbox_unavailable" },
    });
  });
});

it("a creation that E2B refuses is told as the sandboxes tell it", async () => {
  api.plan = ({ method }) => (method === "POST" ? { status: 429 } : "pass");
  expect(await createWith(supervisor)).toMatchObject({ kind: "refused", reason: "throttled" });
});
