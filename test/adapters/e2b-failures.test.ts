/** What each failure of the control plane leads to: never more than is known. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import type { Sandboxes } from "../../functions/pool/ports.ts";
import type { Fault, SeenRequest } from "../faults/proxy/fault.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import {
  addressFrom,
  never,
  newOrder,
  newPoolId,
  optionsFor,
  startRoomyServer,
  sweep,
  type TestServer,
} from "./cloud.ts";

const ttlMs = 60_000;
const cutAnswer: Fault = { kind: "cut", afterBytes: 10 };
let server: TestServer;
let api: FaultProxy;
const usedPools: string[] = [];

beforeAll(async () => {
  server = await startRoomyServer();
  api = await startFaultProxy({ control: server.target.apiUrl });
  await direct().list(newPoolId()); // loads the client, which a short patience has no time for
});
afterAll(async () => {
  await Promise.all([api?.close(), server?.stop()]);
});
afterEach(async () => {
  api.clear();
  await sweep(optionsFor(server), ...usedPools.splice(0));
});

const direct = () => createE2bSandboxes(optionsFor(server));
const proxied = (changes = {}): Sandboxes =>
  createE2bSandboxes(optionsFor(server, { apiUrl: api.controlUrl, requestTimeoutMs: 10_000, ...changes }));

/** Who will get no answer need not wait for it long. */
const patienceFor = (accident: Fault) =>
  accident.kind === "hang_before" || accident.kind === "hang_after" ? { requestTimeoutMs: 300 } : {};

const isCreation = ({ method, url }: SeenRequest) => method === "POST" && url === "/v2/sandboxes";
const isListing = ({ method }: SeenRequest) => method === "GET";
const isKill = ({ method }: SeenRequest) => method === "DELETE";
const isRenewal = ({ url }: SeenRequest) => url.endsWith("/timeout");
const isQuestion = ({ method, url }: SeenRequest) => method === "GET" && url.startsWith("/sandboxes/");

type Fate = readonly [matches: (request: SeenRequest) => boolean, accident: Fault];
function suffer(...fates: Fate[]): void {
  api.clear();
  api.add({ path: "control", fault: (request) => fates.find(([matches]) => matches(request))?.[1] ?? null });
}

function newMeta() {
  const { poolId, slot, generation } = newOrder();
  usedPools.push(poolId);
  return { poolId, slot, generation };
}

async function newSandbox() {
  const meta = newMeta();
  const created = addressFrom(await direct().create(meta, ttlMs, never));
  return { ...meta, ...created };
}

const refusedAs = (code: string) => ({ kind: "refused", reason: "failed", fault: { code } });
const ambiguous = { kind: "ambiguous", fault: { code: "sandbox_unavailable", retryable: true } };
const throttled = { kind: "refused", reason: "throttled", fault: { code: "sandbox_unavailable" } };

describe("a creation that fails", () => {
  it.each<{ accident: Fault; outcome: object; exists: boolean }>([
    { accident: { kind: "answer", status: 400 }, outcome: refusedAs("misconfigured"), exists: false },
    { accident: { kind: "answer", status: 401 }, outcome: refusedAs("misconfigured"), exists: false },
    { accident: { kind: "answer", status: 403 }, outcome: refusedAs("misconfigured"), exists: false },
    { accident: { kind: "answer", status: 404 }, outcome: refusedAs("misconfigured"), exists: false },
    {
      accident: { kind: "answer", status: 404, body: "not JSON" },
      outcome: refusedAs("misconfigured"),
      exists: false,
    },
    { accident: { kind: "answer", status: 408 }, outcome: ambiguous, exists: false },
    { accident: { kind: "answer", status: 409 }, outcome: ambiguous, exists: false },
    { accident: { kind: "answer", status: 429 }, outcome: throttled, exists: false },
    {
      accident: { kind: "answer", status: 429, headers: { "retry-after": "1" } },
      outcome: throttled,
      exists: false,
    },
    { accident: { kind: "answer", status: 500 }, outcome: refusedAs("sandbox_unavailable"), exists: false },
    { accident: { kind: "answer", status: 502, body: "<html>" }, outcome: ambiguous, exists: false },
    { accident: { kind: "answer", status: 503 }, outcome: refusedAs("sandbox_unavailable"), exists: false },
    { accident: { kind: "answer", status: 504 }, outcome: ambiguous, exists: false },
    { accident: { kind: "reset_before" }, outcome: ambiguous, exists: false },
    { accident: { kind: "hang_before" }, outcome: ambiguous, exists: false },
    { accident: { kind: "answer_after", status: 500 }, outcome: ambiguous, exists: true },
    { accident: { kind: "answer_after", status: 503 }, outcome: ambiguous, exists: true },
    { accident: { kind: "answer_after", status: 201, body: "{}" }, outcome: ambiguous, exists: true },
    { accident: { kind: "answer_after", status: 201, body: "not JSON" }, outcome: ambiguous, exists: true },
    { accident: { kind: "answer_after", status: 201, body: "" }, outcome: ambiguous, exists: true },
    { accident: cutAnswer, outcome: ambiguous, exists: true },
    { accident: { kind: "reset_after" }, outcome: ambiguous, exists: true },
    { accident: { kind: "hang_after" }, outcome: ambiguous, exists: true },
  ])("by $accident is $outcome.kind", async ({ accident, outcome, exists }) => {
    const meta = newMeta();
    suffer([isCreation, accident]);
    const sandboxes = proxied(patienceFor(accident));
    const asked = api.requests.filter(isCreation).length;
    expect(await sandboxes.create(meta, ttlMs, never)).toMatchObject(outcome);
    expect(api.requests.filter(isCreation)).toHaveLength(asked + 1); // the pace is the pool's
    if (!exists) expect(await direct().list(meta.poolId)).toEqual([]);
    // What the client gave up waiting for may land after that.
    else await expect.poll(() => direct().list(meta.poolId), { timeout: 10_000 }).toHaveLength(1);
  });

  it.each<{ status: number; listing: Fault }>([
    { status: 500, listing: { kind: "answer", status: 500 } },
    { status: 503, listing: { kind: "answer", status: 500 } },
    { status: 503, listing: { kind: "answer", status: 200, body: "" } },
    { status: 503, listing: { kind: "answer", status: 204, body: "" } },
  ])("by $status is ambiguous when nobody can say whether the sandbox is there ($listing)", async (row) => {
    suffer([isCreation, { kind: "answer", status: row.status }], [isListing, row.listing]);
    expect(await proxied().create(newMeta(), ttlMs, never)).toMatchObject(ambiguous);
  });

  it.each<{ header: string | undefined; retryAfterMs: unknown }>([
    { header: "7", retryAfterMs: 7_000 },
    { header: "0", retryAfterMs: 0 },
    { header: "99999", retryAfterMs: 120_000 },
    { header: new Date(Date.now() + 60_000).toUTCString(), retryAfterMs: expect.closeTo(50_000, -4.5) },
    { header: "soon", retryAfterMs: null },
    { header: undefined, retryAfterMs: null },
  ])("by 429 or 503 with Retry-After $header says when to ask again", async ({ header, retryAfterMs }) => {
    for (const status of [429, 503]) {
      suffer([
        isCreation,
        { kind: "answer", status, ...(header === undefined ? {} : { headers: { "Retry-After": header } }) },
      ]);
      expect(await proxied().create(newMeta(), ttlMs, never)).toMatchObject({
        kind: "refused",
        fault: { retryAfterMs },
      });
    }
  });

  it("by silence ends after the limit also where somebody may give it up", async () => {
    suffer([isCreation, { kind: "hang_before" }]);
    const made = await proxied({ requestTimeoutMs: 300 }).create(newMeta(), ttlMs, never);
    expect(made).toMatchObject({
      ...ambiguous,
      fault: { message: expect.stringContaining("(within 0.3 s)") },
    });
  });

  it.each([
    { what: "nothing listens", findUrl: findClosedPort },
    { what: "the name is unknown", findUrl: async () => "http://no-such-host.invalid" },
  ])("because $what is refused, and can be tried again", async ({ findUrl }) => {
    const made = await proxied({ apiUrl: await findUrl() }).create(newMeta(), ttlMs, never);
    expect(made).toMatchObject({ ...refusedAs("sandbox_unavailable"), fault: { retryable: true } });
  });

  it("because it was given up is refused unasked, and ambiguous once it was asked", async () => {
    suffer([isCreation, { kind: "hang_before" }]);
    const asked = api.requests.filter(isCreation).length;
    const unasked = await proxied().create(newMeta(), ttlMs, AbortSignal.abort());
    expect(unasked).toMatchObject(refusedAs("sandbox_unavailable"));
    expect(api.requests.filter(isCreation)).toHaveLength(asked);
    const underWay = proxied({ requestTimeoutMs: 20_000 }).create(newMeta(), ttlMs, AbortSignal.timeout(200));
    expect(await underWay).toMatchObject(ambiguous);
  });

  it("with a bad key says what to do", async () => {
    const made = await proxied({ apiKey: "e2b_wrong" }).create(newMeta(), ttlMs, never);
    expect(made).toMatchObject(refusedAs("misconfigured"));
    expect(made).toMatchObject({ fault: { message: expect.stringMatching(/API key.*Set a key/) } });
  });

  it("tells what E2B said of a request that it refused", async () => {
    suffer([
      isCreation,
      {
        kind: "answer",
        status: 400,
        body: '{"code":400,"message":"Timeout cannot be greater than 1 hours"}',
      },
    ]);
    expect(await proxied().create(newMeta(), ttlMs, never)).toMatchObject({
      fault: {
        message: "E2B refused to create a sandbox (status 400): Timeout cannot be greater than 1 hours",
      },
    });
  });
});

const failedAs = (reason: string, code: string) => ({ kind: "failed", reason, fault: { code } });
const unsure = failedAs("ambiguous", "sandbox_unavailable");

const changeFailures: { accident: Fault; outcome: object }[] = [
  { accident: { kind: "answer", status: 400 }, outcome: failedAs("ambiguous", "misconfigured") },
  { accident: { kind: "answer", status: 401 }, outcome: failedAs("ambiguous", "misconfigured") },
  { accident: { kind: "answer", status: 403 }, outcome: failedAs("ambiguous", "misconfigured") },
  {
    accident: { kind: "answer", status: 404, body: "not E2B's" },
    outcome: failedAs("ambiguous", "misconfigured"),
  },
  { accident: { kind: "answer", status: 409 }, outcome: unsure },
  { accident: { kind: "answer", status: 429 }, outcome: failedAs("throttled", "sandbox_unavailable") },
  { accident: { kind: "answer", status: 500 }, outcome: unsure },
  { accident: { kind: "answer", status: 502 }, outcome: unsure },
  { accident: { kind: "answer", status: 503 }, outcome: failedAs("throttled", "sandbox_unavailable") },
  { accident: { kind: "answer", status: 504 }, outcome: unsure },
  { accident: { kind: "reset_before" }, outcome: unsure },
  { accident: { kind: "reset_after" }, outcome: unsure },
  { accident: { kind: "hang_before" }, outcome: unsure },
  { accident: { kind: "hang_after" }, outcome: unsure },
];

describe("a kill that fails", () => {
  it.each(changeFailures)(
    "by $accident says that the sandbox may still be there",
    async ({ accident, outcome }) => {
      const { sandboxId } = await newSandbox();
      suffer([isKill, accident]);
      expect(await proxied(patienceFor(accident)).kill(sandboxId)).toMatchObject(outcome);
    },
  );

  it("is repeated until it is done, and then there is nothing to kill", async () => {
    const { sandboxId } = await newSandbox();
    suffer([isKill, { kind: "reset_after" }]);
    expect(await proxied().kill(sandboxId)).toMatchObject(unsure);
    suffer();
    expect(await proxied().kill(sandboxId)).toEqual({ kind: "gone" });
  });
});

describe("a renewal", () => {
  it.each(changeFailures)("that fails by $accident says so", async ({ accident, outcome }) => {
    const { sandboxId } = await newSandbox();
    suffer([isRenewal, accident]);
    expect(await proxied(patienceFor(accident)).renew(sandboxId, ttlMs)).toMatchObject(outcome);
  });

  it("sets the end of the sandbox anew, in whole seconds and not below what was asked", async () => {
    const { sandboxId } = await newSandbox();
    expect(await proxied().renew(sandboxId, 90_001)).toEqual({ kind: "done" });
    expect(JSON.parse(api.requests.filter(isRenewal).at(-1)?.body ?? "")).toEqual({ timeout: 91 });
  });

  it("of a sandbox that is gone says so, after asking for it", async () => {
    const { sandboxId } = await newSandbox();
    await direct().kill(sandboxId);
    expect(await proxied().renew(sandboxId, ttlMs)).toEqual({ kind: "gone" });
  });

  it.each<{ what: string; fates: Fate[] }>([
    { what: "is there all the same", fates: [] },
    { what: "can't be asked for", fates: [[isQuestion, { kind: "answer", status: 500 }]] },
  ])("that finds no sandbox does not call it gone when it $what", async ({ fates }) => {
    const { sandboxId } = await newSandbox();
    suffer([isRenewal, { kind: "answer", status: 404 }], ...fates);
    expect(await proxied().renew(sandboxId, ttlMs)).toMatchObject(unsure);
  });

  it("of a paused sandbox fails, for it is still there", async () => {
    const { sandboxId } = await newSandbox();
    await pause(sandboxId);
    expect(await proxied().renew(sandboxId, ttlMs)).toMatchObject(unsure);
  });
});

describe("a listing", () => {
  it("has every page and every state, and only the pool's", async () => {
    const meta = newMeta();
    const others = await newSandbox();
    const made = [];
    for (let slot = 0; slot < 5; slot += 1) {
      const created = addressFrom(await direct().create({ ...meta, slot }, ttlMs, never));
      made.push({ poolId: meta.poolId, slot, generation: meta.generation, sandboxId: created.sandboxId });
    }
    await pause(made[1]?.sandboxId ?? "");
    const asked = api.requests.filter(isListing).length;
    const listed = await proxied({ listPageSize: 2 }).list(meta.poolId);
    expect(api.requests.filter(isListing)).toHaveLength(asked + 3);
    expect(listed.map(({ startedAtMs, ...rest }) => rest).sort((a, b) => a.slot - b.slot)).toEqual(made);
    for (const { startedAtMs } of listed) expect(Math.abs(Date.now() - startedAtMs)).toBeLessThan(60_000);
    expect(await proxied().list(others.poolId)).toMatchObject([{ sandboxId: others.sandboxId }]);
  });

  it.each<{ accident: Fault; code: string }>([
    { accident: { kind: "answer", status: 400 }, code: "misconfigured" },
    { accident: { kind: "answer", status: 401 }, code: "misconfigured" },
    { accident: { kind: "answer", status: 403 }, code: "misconfigured" },
    { accident: { kind: "answer", status: 404 }, code: "misconfigured" },
    { accident: { kind: "answer", status: 409 }, code: "sandbox_unavailable" },
    { accident: { kind: "answer", status: 429 }, code: "sandbox_unavailable" },
    { accident: { kind: "answer", status: 500 }, code: "sandbox_unavailable" },
    { accident: { kind: "answer", status: 502 }, code: "sandbox_unavailable" },
    { accident: { kind: "answer", status: 503 }, code: "sandbox_unavailable" },
    { accident: { kind: "answer", status: 504 }, code: "sandbox_unavailable" },
    { accident: { kind: "answer", status: 200, body: "{}" }, code: "sandbox_unavailable" },
    { accident: { kind: "answer", status: 200, body: "" }, code: "sandbox_unavailable" },
    { accident: { kind: "answer", status: 204, body: "" }, code: "sandbox_unavailable" },
    {
      accident: { kind: "answer", status: 200, body: "", headers: { "transfer-encoding": "chunked" } },
      code: "sandbox_unavailable",
    },
    { accident: { kind: "answer", status: 200, body: "not JSON" }, code: "sandbox_unavailable" },
    { accident: { kind: "reset_before" }, code: "sandbox_unavailable" },
    { accident: cutAnswer, code: "sandbox_unavailable" },
    { accident: { kind: "hang_before" }, code: "sandbox_unavailable" },
  ])("whose second page fails by $accident is no listing", async ({ accident, code }) => {
    const { poolId, slot, generation } = await newSandbox();
    await direct().create({ poolId, slot: slot + 1, generation }, ttlMs, never);
    suffer([(request) => request.url.includes("nextToken"), accident]);
    await expect(proxied({ listPageSize: 1, ...patienceFor(accident) }).list(poolId)).rejects.toMatchObject({
      name: "Fault",
      code,
    });
  });

  it("is none when it is another pool's, on any page: its own sandboxes would seem to be gone", async () => {
    const own = await newSandbox();
    const foreign = await newSandbox();
    const { body } = await firstAnswer(foreign.poolId);
    const { poolId, slot, generation } = own;
    await direct().create({ poolId, slot: slot + 1, generation }, ttlMs, never);
    for (const isPage of [isListing, (request: SeenRequest) => request.url.includes("nextToken")]) {
      suffer([isPage, { kind: "answer", status: 200, body }]);
      await expect(proxied({ listPageSize: 1 }).list(poolId)).rejects.toMatchObject({
        name: "Fault",
        code: "sandbox_unavailable",
        message: expect.stringContaining("doesn't filter by metadata"),
      });
    }
    suffer();
    expect(await proxied().list(poolId)).toHaveLength(2);
    expect(await proxied().list(foreign.poolId)).toHaveLength(1);
  });

  it("leaves out what is another pool's among its own, as a cloud that doesn't filter has it", async () => {
    const [own, foreign] = [await newSandbox(), await newSandbox()];
    const pages = await Promise.all([own, foreign].map(({ poolId }) => firstAnswer(poolId)));
    const body = JSON.stringify(pages.flatMap((page) => JSON.parse(page.body)));
    suffer([isListing, { kind: "answer", status: 200, body }]);
    const listed = await proxied().list(own.poolId);
    expect(listed.map(({ sandboxId }) => sandboxId)).toEqual([own.sandboxId]);
  });

  it("has a sandbox of the pool whose slot can't be read, as one that no slot knows", async () => {
    const { poolId } = await newSandbox();
    const { body } = await firstAnswer(poolId);
    suffer([isListing, { kind: "answer", status: 200, body: body.replace('"slot":"3"', '"slot":"three"') }]);
    expect(await proxied().list(poolId)).toMatchObject([{ slot: -1, generation: 7 }]);
  });
});

async function findClosedPort(): Promise<string> {
  const closed = await startFaultProxy({ control: "http://unused.invalid" });
  await closed.close();
  return closed.controlUrl;
}

/** The server's own list of a pool, as it is on the wire. */
async function firstAnswer(poolId: string): Promise<{ body: string }> {
  const metadata = new URLSearchParams({ pool_id: encodeURIComponent(poolId) }).toString();
  const response = await fetch(
    `${server.target.apiUrl}/v2/sandboxes?metadata=${encodeURIComponent(metadata)}`,
    {
      headers: { "x-api-key": server.target.apiKey },
    },
  );
  return { body: await response.text() };
}

async function pause(sandboxId: string): Promise<void> {
  const response = await fetch(`${server.target.apiUrl}/sandboxes/${sandboxId}/pause`, {
    method: "POST",
    headers: { "x-api-key": server.target.apiKey, "content-type": "application/json" },
    body: "{}",
  });
  expect(response.status).toBe(204);
}
