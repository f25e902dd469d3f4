/** A worker whose supervisor is not reached: is the worker gone, or only the way to it? */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createE2bClient } from "../../functions/adapters/e2b-client.ts";
import { resolveE2bOptions } from "../../functions/adapters/e2b-options.ts";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import { createE2bWorkerFactory } from "../../functions/adapters/e2b-worker-factory.ts";
import { type Unheard, unheard } from "../../functions/adapters/supervisor-unheard.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import type { Sighting } from "../../functions/adapters/worker-confirmation.ts";
import { decideByControlPlane } from "../../functions/adapters/worker-reach.ts";
import type { WorkerAddress } from "../../functions/pool/ports.ts";
import type { Fault, SeenRequest } from "../faults/proxy/fault.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import {
  addressFrom,
  collect,
  doublingChunk,
  factoryFor,
  never,
  newOrder,
  optionsFor,
  outputsOf,
  startRoomyServer,
  supervisor,
  sweep,
  type TestServer,
} from "./cloud.ts";

const order = newOrder();
let server: TestServer;
let proxy: FaultProxy;
let worker: WorkerAddress;
let token = 0;

beforeAll(async () => {
  server = await startRoomyServer();
  const { apiUrl: control, sandboxUrl: sandbox } = server.target;
  proxy = await startFaultProxy({ control, sandbox });
  worker = { ...order, ...addressFrom(await factoryFor(optionsFor(server)).create(order, never)) };
});
afterAll(async () => {
  await sweep(optionsFor(server), order.poolId);
  await Promise.all([proxy?.close(), server?.stop()]);
});
beforeEach(() => {
  proxy.clear();
  proxy.requests.length = 0;
});

const isExecution = ({ url }: SeenRequest) => url === "/v1/execute";
const answer = (status: number, body?: string): Fault => ({
  kind: "answer",
  status,
  ...(body === undefined ? {} : { body }),
});
const notOpen = answer(502, '{"message":"The sandbox is running but port is not open","code":502}');

function failExecutions(fault: Fault, to = Number.POSITIVE_INFINITY): void {
  proxy.add({ path: "supervisor", match: { url: "/v1/execute", nth: { from: 1, to } }, fault });
}

/** The question for a sandbox. */
const failQuestions = (fault: Fault, until = () => false) =>
  proxy.add({ path: "control", match: { method: "GET", url: /^\/sandboxes\//, until }, fault });

/** Without pauses between the tries. */
function execute(of = worker) {
  const e2b = optionsFor(server, { apiUrl: proxy.controlUrl, sandboxUrl: proxy.sandboxUrl });
  const workers = createE2bWorkerFactory({ e2b, supervisor, clock: systemClock, random: () => 0 });
  token += 1;
  return collect(workers.attach(of).execute(doublingChunk(`c${token}`), token, never));
}

const lost = (why: RegExp) => ({ name: "Fault", code: "worker_lost", message: expect.stringMatching(why) });

describe("a chunk whose request doesn't get to the supervisor", () => {
  it.each<{ accident: Fault }>([
    { accident: answer(404, "not ours") },
    { accident: answer(408) },
    { accident: answer(429) },
    { accident: answer(500) },
    { accident: notOpen },
    { accident: answer(503) },
    { accident: answer(504) },
    { accident: { kind: "reset_before" } },
  ])("by $accident three times runs on the same worker all the same", async ({ accident }) => {
    const times = accident.kind === "reset_before" ? 6 : 3; // a reset is tried again at once, before anybody is asked
    failExecutions(accident, times);
    expect(outputsOf(await execute())).toEqual(["42\n", "8\n"]);
    expect(proxy.requests.filter(isExecution)).toHaveLength(times + 1);
  });

  it.each<{ accident: Fault; why: RegExp }>([
    { accident: notOpen, why: /status 502, 4 times in a row/ },
    { accident: answer(500), why: /status 500, 4 times/ },
    { accident: answer(504), why: /status 504, 4 times/ },
    { accident: { kind: "reset_before" }, why: /connection failed \(reset\), 4 times/ },
  ])("by $accident every time is lost although its sandbox runs", async ({ accident, why }) => {
    failExecutions(accident);
    await expect(execute()).rejects.toMatchObject(lost(why));
    expect(proxy.requests.filter(isExecution)).toHaveLength(accident.kind === "reset_before" ? 8 : 4);
  });

  it("because its sandbox is gone is lost at once", async () => {
    const other = newOrder();
    const created = addressFrom(
      await createE2bSandboxes(optionsFor(server)).create(other, other.ttlMs, never),
    );
    await createE2bSandboxes(optionsFor(server)).kill(created.sandboxId);
    await expect(execute({ ...other, ...created })).rejects.toMatchObject(lost(/its sandbox is gone/));
    expect(proxy.requests.filter(isExecution)).toHaveLength(1);
  });

  it("is not lost because E2B tells of another sandbox, which is paused", async () => {
    failExecutions(notOpen, 2);
    const question = failQuestions({
      kind: "rewrite",
      body: (info) => JSON.stringify({ ...JSON.parse(info), sandboxID: "another", state: "paused" }),
    });
    expect(outputsOf(await execute())).toEqual(["42\n", "8\n"]);
    expect(question.injected).toHaveLength(2);
  });

  it("because E2B as a whole is out of order is sent until E2B is back", async () => {
    failExecutions(answer(502), 8);
    failQuestions(answer(503), () => proxy.requests.filter(isExecution).length >= 8);
    expect(outputsOf(await execute())).toEqual(["42\n", "8\n"]);
    expect(proxy.requests.filter(isExecution)).toHaveLength(9);
  });

  it("but was refused by the supervisor itself is not sent again", async () => {
    failExecutions(answer(409, '{"code":"stale_token","detail":"no"}'));
    await expect(execute()).rejects.toMatchObject({ code: "supervisor_protocol" });
    expect(proxy.requests.filter(isExecution)).toHaveLength(1);
  });

  it("although the supervisor took it is run again there, under another id", async () => {
    failExecutions({ kind: "answer_after", status: 504 }, 1);
    expect(outputsOf(await execute())).toEqual(["42\n", "8\n"]);
    const ids = proxy.requests.filter(isExecution).map(({ body }) => JSON.parse(body).chunk_id);
    expect(ids).toEqual([`c${token}`, `c${token}`, `c${token}.1`]);
  });
});

describe("a decision", () => {
  /** Time that passes by pauses alone. */
  function decideFor(
    sandboxId: string,
    random = () => 0.5,
    sighting: Sighting = { kind: "well" },
    lastHeardAtMs = (_nowMs: number) => 0,
  ) {
    const pauses: number[] = [];
    let looks = 0;
    let nowMs = 1_800_000_000_000;
    const clock = {
      nowMs: () => nowMs,
      sleep: async (ms: number) => {
        pauses.push(ms);
        nowMs += ms;
      },
    };
    const client = createE2bClient(resolveE2bOptions(optionsFor(server, { apiUrl: proxy.controlUrl })));
    const context = {
      client,
      sandboxId,
      clock,
      random,
      deadlineAtMs: nowMs + 840_000,
      signal: never,
      lastHeardAtMs: () => lastHeardAtMs(nowMs),
    };
    const lookAgain = async () => {
      looks += 1;
      return sighting;
    };
    return { pauses, decide: decideByControlPlane({ ...context, lookAgain }), looks: () => looks };
  }
  const refusal: Unheard = { kind: "answered", why: "status 503", isRefusal: true, retryAfterMs: null };
  const failure = unheard("answered", "status 502");

  it("on refusals is to try again for a minute, and then not to blame the worker", async () => {
    const { pauses, decide } = decideFor(worker.sandboxId);
    let tries = 1;
    let fault = await decide(refusal, tries);
    while (fault === null) fault = await decide(refusal, ++tries);
    expect(fault).toMatchObject({ code: "sandbox_unavailable", retryable: true });
    expect(pauses.slice(0, 5)).toEqual([500, 1_000, 2_000, 4_000, 8_000]);
    expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(60_000);
  });

  it("leaves a pause that is spread over all of it, and at least as long as was asked for", async () => {
    const { pauses, decide } = decideFor(worker.sandboxId, () => 0);
    await decide(refusal, 5);
    await decide({ ...refusal, retryAfterMs: 7_000 }, 6);
    expect(pauses).toEqual([0, 7_000]);
  });

  it.each([401, 403])("without the right to ask (%i) has an end", async (status) => {
    failQuestions(answer(status));
    const { decide } = decideFor(worker.sandboxId);
    for (const tries of [1, 2, 3]) expect(await decide(failure, tries)).toBeNull();
    expect(await decide(failure, 4)).toMatchObject({ code: "worker_lost" });
  });

  it.each<{ accident: Fault }>([
    { accident: answer(429) },
    { accident: answer(500) },
    { accident: answer(503) },
    { accident: { kind: "reset_before" } },
  ])("while E2B answers $accident to the question has no end", async ({ accident }) => {
    failQuestions(accident);
    const { decide } = decideFor(worker.sandboxId);
    for (const tries of [1, 10, 100]) {
      expect(await decide(failure, tries)).toBeNull();
      expect(await decide(refusal, tries)).toBeNull();
    }
  });

  const gone = "igonegonegonegonegone";
  const well: Sighting = { kind: "well" };
  const changed: Sighting = { kind: "changed", why: "its supervisor was started again" };
  const noWay: Sighting = { kind: "no_way", why: "no connection" };
  const mute: Sighting = { kind: "mute", why: "no answer" };
  const again = null;

  it.each<{ sees: Sighting; decides: (null | RegExp)[] }>([
    { sees: well, decides: [again, again, /silent, 3 times/] },
    { sees: mute, decides: [again, /on a new connection neither/] },
    { sees: changed, decides: [/started again/] },
    { sees: noWay, decides: [again, again, again, again, again] },
  ])(
    "on silence of a worker that is $sees.kind on a new connection is $decides",
    async ({ sees, decides }) => {
      const { decide, looks } = decideFor(worker.sandboxId, () => 0.5, sees);
      for (const [index, expected] of decides.entries()) {
        const fault = await decide(unheard("silent", "it was silent"), index + 1);
        if (expected === null) expect(fault).toBeNull();
        else expect(fault).toMatchObject(lost(expected));
      }
      expect(looks()).toBe(decides.length);
    },
  );

  it.each<{ sees: Sighting; looks: number; decides: object }>([
    { sees: well, looks: 1, decides: { code: "sandbox_unavailable", retryable: true } },
    { sees: noWay, looks: 1, decides: { code: "sandbox_unavailable", retryable: true } },
    { sees: changed, looks: 1, decides: lost(/started again/) },
    { sees: mute, looks: 4, decides: lost(/doesn't answer any more/) },
  ])("on a cut answer of a worker that is $sees.kind then is $decides.code", async (row) => {
    const { decide, looks } = decideFor(worker.sandboxId, () => 0.5, row.sees);
    expect(await decide(unheard("cut", "its answer was cut"), 1)).toMatchObject(row.decides);
    expect(looks()).toBe(row.looks);
  });

  it.each(["no_connection", "answered", "broken", "silent", "cut"] as const)(
    "on whatever (%s) is that the worker is lost when its sandbox is gone, whoever answers in its place",
    async (kind) => {
      const { decide } = decideFor(gone);
      expect(await decide(unheard(kind, "why"), 1)).toMatchObject(lost(/its sandbox is gone/));
    },
  );

  it.each([{ what: "runs" }, { what: "can't be asked for", accident: answer(503) }])(
    "without a connection to a sandbox that $what is to try on, and near the deadline not to blame the worker",
    async ({ accident }) => {
      if (accident !== undefined) failQuestions(accident);
      const { decide, pauses } = decideFor(worker.sandboxId);
      let tries = 1;
      let fault = await decide(unheard("no_connection", "why"), tries);
      while (fault === null) fault = await decide(unheard("no_connection", "why"), ++tries);
      expect(fault).toMatchObject({ code: "sandbox_unavailable", retryable: true });
      expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThan(800_000);
    },
  );

  const startedAtMs = 1_800_000_000_000;
  it.each<{ others: string; heardAtMs: (nowMs: number) => number; from: number; to: number }>([
    { others: "are heard", heardAtMs: (nowMs) => nowMs, from: 10_000, to: 30_000 },
    { others: "were heard before", heardAtMs: () => startedAtMs - 1, from: 800_000, to: 840_000 },
    { others: "were heard at first", heardAtMs: () => startedAtMs + 1_000, from: 800_000, to: 840_000 },
  ])(
    "without a connection while other workers $others is to give it back after $from ms",
    async ({ heardAtMs, from, to }) => {
      const { decide, pauses } = decideFor(worker.sandboxId, undefined, undefined, heardAtMs);
      let tries = 1;
      let fault = await decide(unheard("no_connection", "why"), tries);
      while (fault === null) fault = await decide(unheard("no_connection", "why"), ++tries);
      expect(fault).toMatchObject({ code: "sandbox_unavailable", retryable: true });
      const tookMs = pauses.reduce((sum, ms) => sum + ms, 0);
      expect(tookMs).toBeGreaterThanOrEqual(from);
      expect(tookMs).toBeLessThan(to);
    },
  );
});
