/** E2B ends every sandbox, between batches or in the middle of one, and what waits behind slow programs. */
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";

vi.setConfig({ testTimeout: 90_000 });

const workers = 4;
let stack: LocalStack;
let programs = 0;

beforeAll(async () => {
  stack = await startLocalStack({ port: 0, slots: workers, cron: false });
  await putRun();
});

afterAll(async () => {
  expect(await stack.emptyPool()).toEqual([]);
  await stack.close();
});

const headers = () => ({ authorization: `Bearer ${stack.apiKey}`, "content-type": "application/json" });

/** What was killed is found out by a sweep first, so that there are workers, and none is in the making. */
async function putRun(): Promise<void> {
  await fetch(`${stack.url}/local/sweep`, { method: "POST", headers: headers() });
  const body = JSON.stringify({ workers });
  const answer = await fetch(`${stack.url}/v1/runs/mortal`, { method: "PUT", headers: headers(), body });
  const { workers_ready } = (await answer.json()) as { workers_ready: number };
  expect(workers_ready).toBeGreaterThan(1);
}

async function listSandboxes(): Promise<string[]> {
  const ids: string[] = [];
  const pages = Sandbox.list({ ...stack.e2b });
  while (pages.hasNext) ids.push(...(await pages.nextItems()).map(({ sandboxId }) => sandboxId));
  return ids;
}

async function countLeased(): Promise<number> {
  const answer = await fetch(`${stack.url}/readyz`, { headers: headers() });
  const { checks } = (await answer.json()) as { checks: { pool: { leased: number } | null } };
  return checks.pool?.leased ?? 0;
}

async function killAll(): Promise<number> {
  const ids = await listSandboxes();
  await Promise.all(ids.map((id) => Sandbox.kill(id, { ...stack.e2b })));
  return ids.length;
}

interface Answer {
  readonly rewards: (number | null)[];
  readonly usage: { readonly workers: number; readonly retries: number; readonly wall_ms: number };
}

/** Each source is made a program that nobody sent before; its output should be 1. */
async function send(sources: readonly string[]): Promise<Answer> {
  const samples = sources.map((source) => ({
    task: "one",
    completion: `\`\`\`python\n${source} # ${programs++}\n\`\`\``,
  }));
  const tasks = { one: { test_cases: [{ input: "", output: "1" }] } };
  const body = JSON.stringify({
    run_id: "mortal",
    tasks,
    samples,
    options: { detail: "rewards", deadline_ms: 60_000 },
  });
  const answer = await fetch(`${stack.url}/v1/rewards`, { method: "POST", headers: headers(), body });
  const text = await answer.text();
  expect(answer.status, text).toBe(200);
  return JSON.parse(text);
}

const quick = (count: number) => Array.from({ length: count }, () => "print(1)");
const sleeper = (seconds: number) => `import time; time.sleep(${seconds}); print(1)`;

describe("sandboxes that E2B has ended", () => {
  it.each([1, 64])("while they were idle cost a batch of %i no reward", async (count) => {
    await send(quick(64));
    expect(await killAll()).toBeGreaterThan(0);
    const { rewards } = await send(quick(count));
    expect(rewards).toEqual(quick(count).map(() => 1));
  });

  it("in the middle of a batch cost it no reward", async () => {
    await putRun();
    const sources = Array.from({ length: 24 }, () => sleeper(0.2));
    let isOver = false;
    const answer = send(sources).finally(() => {
      isOver = true;
    });
    await vi.waitUntil(async () => (await countLeased()) > 0, { interval: 20, timeout: 30_000 });
    expect(await killAll()).toBeGreaterThan(0);
    expect(isOver, "the batch was under way").toBe(false);
    expect((await answer).rewards).toEqual(sources.map(() => 1));
  });
});

describe("what waits behind slow programs", () => {
  it("is done by another worker meanwhile", async () => {
    await putRun();
    await send(quick(64));
    const { rewards, usage } = await send(Array.from({ length: 16 }, () => sleeper(0.3)));
    expect(rewards).toEqual(quick(16).map(() => 1));
    expect(usage.workers).toBeGreaterThan(1);
    expect(usage.wall_ms, "less than one after the other").toBeLessThan(16 * 300);
  });
});
