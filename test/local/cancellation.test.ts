/** Programs that nobody waits for any more end: on real workers, seen in the kernel's own list of processes. */
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";
import { startLocalStackProcess } from "../bench/local-stack-process.ts";

/** One worker, so that whoever comes next gets the one that was stopped. */
let stack: LocalStack;
/** Another handler over the same table and sandboxes. */
let other: LocalStack;
const stopsWithinMs = 2_000;

beforeAll(async () => {
  stack = await startLocalStack({ port: 0, slots: 1, cron: false, apiKey: "key" });
  const { e2b, dynamoDbEndpoint } = stack;
  other = await startLocalStack({ port: 0, slots: 1, cron: false, apiKey: "key", e2b, dynamoDbEndpoint });
});

afterEach(() => {
  expect(listMarked(), "no test leaves a program behind").toEqual([]);
});

afterAll(async () => {
  await other?.close();
  await stack?.close();
});

const marker = "nobody-waits-for-me";
/** Replaces itself by a Python that is told from all others, and has a child as stubborn as itself. */
const sleeper = [
  "import os, sys",
  "import signal",
  "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
  "os.fork()",
  `os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(50)", "${marker}"])`,
].join("\n");

function listMarked(): number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(marker) ? [Number(name)] : [];
    } catch {
      return []; // it ended while we looked
    }
  });
}

const batchOf = (source: string, more = {}) => ({
  samples: [
    {
      task: { test_cases: [{ input: "", output: "1" }], limits: { time_ms: 60_000 } },
      completion: `\`\`\`python\n${source}\n\`\`\``,
    },
  ],
  ...more,
});

interface Endpoint {
  readonly url: string;
}

function send({ url }: Endpoint, path: string, init: RequestInit = {}, more: Record<string, string> = {}) {
  const headers = { authorization: "Bearer key", "content-type": "application/json", ...more };
  return fetch(`${url}${path}`, { ...init, headers });
}

function grade(endpoint: Endpoint, batch: unknown, init: RequestInit = {}, more = {}) {
  return send(endpoint, "/v1/rewards", { method: "POST", body: JSON.stringify(batch), ...init }, more);
}

/** A batch whose program has begun. */
async function begin(endpoint: Endpoint, batch: unknown, init: RequestInit = {}, more = {}) {
  const answer = grade(endpoint, batch, init, more);
  answer.catch(() => {});
  await expect.poll(() => listMarked().length, { timeout: 10_000, interval: 20 }).toBe(2);
  return { answer };
}

async function untilStopped(): Promise<number> {
  const startedAtMs = performance.now();
  await expect.poll(() => listMarked(), { timeout: stopsWithinMs, interval: 10 }).toEqual([]);
  return performance.now() - startedAtMs;
}

/** The worker that was stopped is used again, and is clean. */
async function expectReuse(): Promise<void> {
  const { rewards, usage } = (await (await grade(other, batchOf("print(1)"))).json()) as {
    rewards: number[];
    usage: { workers_created: number };
  };
  expect({ rewards, created: usage.workers_created }).toEqual({ rewards: [1], created: 0 });
}

it("ends the programs of a caller whose connection is closed", async () => {
  const gone = new AbortController();
  const { answer } = await begin(stack, batchOf(sleeper), { signal: gone.signal });
  gone.abort();
  console.log(`closed connection: stopped after ${(await untilStopped()).toFixed(0)} ms`);
  await expect(answer).rejects.toThrow();
  await expectReuse();
});

it("gives a worker to the next batch only when the one before has left it", async () => {
  const gone = new AbortController();
  await begin(stack, batchOf(sleeper), { signal: gone.signal });
  const next = grade(other, batchOf("print(1)"), {}, { accept: "application/x-ndjson" });
  gone.abort();
  const reader = (await next).body?.getReader();
  let text = "";
  while (!text.includes('"result"')) {
    const piece = await reader?.read();
    if (piece === undefined || piece.done) break;
    text += Buffer.from(piece.value).toString();
  }
  expect(listMarked()).toEqual([]); // while the next batch has a result already
  expect(text).toContain('"reward":1');
  await reader?.cancel();
});

it("ends the programs of a batch whose time is up before the next one begins", async () => {
  const { answer } = await begin(stack, batchOf(sleeper, { options: { deadline_ms: 1_500 } }));
  const body = (await (await answer).json()) as { results: { fault: { code: string } }[] };
  expect(body.results[0]?.fault.code).toBe("deadline_exceeded");
  await expectReuse();
  expect(listMarked()).toEqual([]);
});

it("ends a batch's programs when another handler is asked to, and answers when they are gone", async () => {
  const { answer } = await begin(stack, batchOf(sleeper), {}, { "idempotency-key": "job/1" });
  const startedAtMs = performance.now();
  const cancelled = await send(other, "/v1/batches/job%2F1", { method: "DELETE" });
  const tookMs = performance.now() - startedAtMs;
  expect(listMarked()).toEqual([]);
  expect({ status: cancelled.status, body: await cancelled.json() }).toEqual({
    status: 200,
    body: { cancelled: true, stopped: 1 },
  });
  console.log(`DELETE of a batch: answered after ${tookMs.toFixed(0)} ms`);
  expect(tookMs).toBeLessThan(stopsWithinMs);
  expect(await (await answer).json()).toMatchObject({ status: 409, code: "cancelled" });
  await expectReuse();
});

it("ends a finished run's programs wherever they run, and leaves no sandbox", async () => {
  await send(stack, "/v1/runs/job-7", { method: "PUT", body: "{}" });
  const { answer } = await begin(stack, batchOf(sleeper, { run_id: "job-7" }));
  const finished = await send(other, "/v1/runs/job-7", { method: "DELETE" });
  expect(listMarked()).toEqual([]);
  expect(await finished.json()).toMatchObject({ run_id: "job-7", remaining_sandboxes: [] });
  expect(await (await answer).json()).toMatchObject({ status: 409, code: "run_finished" });
});

it("ends the programs of a server that is told to stop", async () => {
  const { e2b, dynamoDbEndpoint } = stack;
  const server = await startLocalStackProcess(["--slots", "1", "--no-cron"], {
    E2B_API_KEY: e2b.apiKey,
    E2B_API_URL: e2b.apiUrl ?? "",
    E2B_SANDBOX_URL: e2b.sandboxUrl ?? "",
    DYNAMODB_ENDPOINT: dynamoDbEndpoint,
    CODE_REWARDS_API_KEY: "key",
  });
  const { answer } = await begin(server, batchOf(sleeper));
  const exited = once(server.child, "exit");
  server.child.kill("SIGTERM");
  console.log(`SIGTERM: stopped after ${(await untilStopped()).toFixed(0)} ms`);
  expect(await (await answer).json()).toMatchObject({ status: 503, code: "stopping" });
  expect(await exited).toEqual([0, null]);
  await expectReuse();
}, 60_000);
