/** How requests, answers and processes of the deployed function end when something ends them too early. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Container } from "./lambda/container.ts";
import { type Deployment, deploy } from "./lambda/deployment.ts";
import {
  batchOf,
  countMarked,
  grade,
  logOf,
  markedSleep,
  readLines,
  send,
  sleepThenPrint,
} from "./lambda/requests.ts";
import { fetchTimeoutMs } from "./lambda/runtimes.ts";

const rewards = "functions/reward.ts";
const ndjson = { accept: "application/x-ndjson" };
const longer = sleepThenPrint(50);

let deployment: Deployment;
let apiKey: string;
/** Two containers of the endpoint, each for one request at a time, and one worker for both. */
let first: Container;
let second: Container;

beforeAll(async () => {
  deployment = await deploy({ slots: 1 });
  apiKey = deployment.world.apiKey;
  first = await deployment.start(rewards, "node24");
  second = await deployment.start(rewards, "node22");
  await grade(first, batchOf("print(1)"), { apiKey });
}, fetchTimeoutMs);

afterAll(async () => {
  await deployment?.close();
});

/** Resolves when a batch holds the only worker. */
async function untilHeld(): Promise<void> {
  await expect.poll(holders, { timeout: 10_000, interval: 20 }).toEqual(["leased"]);
}

async function holders(): Promise<string[]> {
  return (await deployment.world.slots()).map(({ state }) => state);
}

/** The worker is whole, free at once, and the only one. */
async function expectReuse(container: Container): Promise<void> {
  const startedAtMs = performance.now();
  const answer = await (await grade(container, batchOf("print(1)"), { apiKey })).json();
  expect(answer).toMatchObject({ rewards: [1], usage: { workers_created: 0 } });
  expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  expect(deployment.world.sandboxes()).toBe(1);
}

describe("a batch", () => {
  it("that is cancelled in mid-stream ends with its error line, and its programs end", async () => {
    const headers = { ...ndjson, "idempotency-key": "job/1", "x-request-id": "trace-1" };
    const answer = grade(first, batchOf(longer), { apiKey, headers });
    await untilHeld();
    const cancelled = await send(second, "/v1/batches/job%2F1", { method: "DELETE", apiKey });
    expect(await cancelled.json()).toEqual({ cancelled: true, stopped: 1 });
    const lines = await readLines(await answer);
    expect(lines.at(0)?.line).toEqual({ type: "progress", done: 0, total: 1 });
    expect(lines.at(-1)?.line).toMatchObject({ type: "error", code: "cancelled", request_id: "trace-1" });
    await expectReuse(second);
  });

  it("is over before the platform ends its request", async () => {
    const hasty = await deployment.start(rewards, "node22", { timeoutMs: 32_000 });
    const startedAtMs = performance.now();
    const answer = await (await grade(hasty, batchOf(longer), { apiKey })).json();
    expect(answer).toMatchObject({
      rewards: [null],
      results: [{ fault: { code: "deadline_exceeded", retryable: true } }],
    });
    expect(performance.now() - startedAtMs).toBeLessThan(12_000);
    expect(logOf(hasty)).toEqual([
      expect.objectContaining({
        level: "WARN",
        message: "graded a batch",
        faults: 1,
        faultCodes: { deadline_exceeded: 1 },
      }),
      expect.objectContaining({ Samples: 1, Faults: 1 }),
    ]);
    await expectReuse(second);
  });

  it("is graded to its end when its client has gone, and its record answers who sends it again", async () => {
    const gone = new AbortController();
    const batch = batchOf(sleepThenPrint(2));
    const headers = { "idempotency-key": "job/2" };
    const traced = { ...headers, "x-request-id": "trace-gone" };
    const answer = grade(first, batch, { apiKey, headers: traced, signal: gone.signal });
    await untilHeld();
    gone.abort();
    await expect(answer).rejects.toThrow();
    const tooEarly = await grade(second, batch, { apiKey, headers });
    expect(await tooEarly.json()).toMatchObject({ status: 409, code: "in_progress" });
    const findReport = () => logOf(first).find((line) => line.request_id === "trace-gone");
    await expect.poll(findReport, { timeout: 20_000 }).toMatchObject({ samples: 1, faults: 0 });
    const reports = logOf(second).length;
    const again = await (await grade(second, batch, { apiKey, headers })).json();
    expect(again).toMatchObject({ rewards: [1], usage: { workers: 1, programs_run: 1 } });
    expect(logOf(second)).toHaveLength(reports); // nothing was graded, so nothing is counted
    await expectReuse(first);
  });

  it("is to be sent again when the process is told to end, and its workers are given back", async () => {
    const ending = await deployment.start(rewards, "node24");
    const headers = { ...ndjson, "idempotency-key": "job/4" };
    const answer = await grade(ending, batchOf(longer), { apiKey, headers });
    const lines = readLines(answer);
    await untilHeld();
    const startedAtMs = performance.now();
    await ending.end("SIGTERM");
    expect(performance.now() - startedAtMs).toBeLessThan(2_000); // so long the platform waits
    const told = { type: "error", status: 503, code: "stopping", retry_after_s: 2 };
    expect((await lines).at(-1)?.line).toMatchObject(told);
    expect(await holders()).toEqual(["ready"]);
    const again = await grade(second, batchOf("print(1)"), { apiKey, headers });
    expect((await readLines(again)).at(-1)?.line).toMatchObject({ type: "summary", rewards: [1] });
    await expectReuse(second);
  });
});

describe("an answer", () => {
  it("that breaks in its middle is cut, not made to look whole", async () => {
    const bodies = await deployment.start("test/stacks/lambda/bodies.ts", "node24");
    const broken = await fetch(`${bodies.url}/broken`);
    await expect(broken.text()).rejects.toThrow();
    const whole = await fetch(`${bodies.url}/whole/30000000`);
    expect((await whole.arrayBuffer()).byteLength).toBe(30_000_000);
  });
});

describe("a process that is frozen in the middle of a batch, for longer than its lease", () => {
  const entry = "test/stacks/lambda/impatient-rewards.ts";
  const leaseOverMs = 4_000;
  let frozen: Container;
  let other: Container;
  beforeAll(async () => {
    frozen = await deployment.start(entry, "node24");
    other = await deployment.start(entry, "node22");
  });

  /** A batch whose program runs, in a process that doesn't. */
  async function freezeWithin(batch: unknown, headers: Record<string, string> = {}) {
    const answer = grade(frozen, batch, { apiKey, headers: { ...ndjson, ...headers } });
    await expect.poll(countMarked, { timeout: 10_000, interval: 20 }).toBe(1);
    frozen.freeze();
    return { answer };
  }

  /** The next event continues the process; it waits for the one before. */
  const next = () => fetch(`${frozen.url}/healthz`);

  it("changes nothing of what was done meanwhile: its batch was graded, its worker is another's", async () => {
    const batch = batchOf(markedSleep(5));
    const headers = { "idempotency-key": "job/3" };
    const { answer } = await freezeWithin(batch, headers);
    const sendAgain = (container: Container) => grade(container, batch, { apiKey, headers });
    expect((await sendAgain(other)).headers.get("retry-after")).toBe("2");
    let recorded: object = {};
    const ask = async () => {
      const answered = await sendAgain(other);
      recorded = (await answered.json()) as object;
      return answered.status;
    };
    await expect.poll(ask, { timeout: 20_000 }).toBe(200);
    expect(recorded).toMatchObject({ rewards: [1], usage: { workers_created: 0, retries: 0 } });
    const running = grade(other, batchOf(sleepThenPrint(2)), { apiKey });
    await untilHeld();
    const health = next();
    const lines = await readLines(await answer);
    expect(lines.at(-1)?.line).toMatchObject({ type: "error", code: "in_progress" });
    expect((await health).status).toBe(200);
    expect(await (await running).json()).toMatchObject({ rewards: [1], usage: { retries: 0 } });
    const replay = await (await sendAgain(frozen)).json();
    expect(replay).toEqual({ ...recorded, request_id: expect.any(String) });
    await expectReuse(frozen);
  });

  it("goes on with its worker when nobody has taken it", async () => {
    const { answer } = await freezeWithin(batchOf(markedSleep(2)));
    await new Promise((resolve) => setTimeout(resolve, leaseOverMs)); // it is time itself that is tested
    const health = next();
    const lines = await readLines(await answer);
    expect(lines.at(-1)?.line).toMatchObject({ type: "summary", rewards: [1], usage: { retries: 0 } });
    expect((await health).status).toBe(200);
    await expectReuse(frozen);
  });
});
