/**
 * An endpoint that is frozen in the middle of a batch while its workers and its batch go to others, and is thawed.
 *
 * Leases are shortened, so that seconds do; with `CODE_REWARDS_LONG_TESTS=1` they are those of production, and it
 * stands still for 90 s.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { callEndpoint, type EndpointAddress } from "../../functions/local/rewards-client.ts";
import type { LocalStackOptions } from "../../functions/local/stack.ts";
import { readSlots } from "./fault-table.ts";
import { type ProxiedStack, startProxiedStack } from "./proxied-stack.ts";

const isLong = process.env.CODE_REWARDS_LONG_TESTS === "1";
const short = { leaseMs: 5_000, extendEveryMs: 1_000, graceMs: 500 };
const poolTimes = isLong ? {} : short;
const frozenMs = isLong ? 90_000 : 9_000;

/** The other endpoint, in this process, and what both share. */
let behind: ProxiedStack;
let frozen: EndpointAddress & { readonly child: ChildProcess };

beforeAll(async () => {
  behind = await startProxiedStack({ slots: 6, plan: "pro", apiKey: "key", poolTimes });
  frozen = await startEndpoint({
    port: 0,
    apiKey: "key",
    slots: 6,
    plan: "pro",
    cron: false,
    poolTimes,
    e2b: {
      apiKey: behind.direct.apiKey,
      apiUrl: behind.proxy.controlUrl,
      sandboxUrl: behind.proxy.sandboxUrl,
    },
    dynamoDbEndpoint: behind.proxy.tableUrl,
  });
});
afterAll(async () => {
  if (frozen !== undefined && frozen.child.exitCode === null) {
    frozen.child.kill("SIGCONT");
    frozen.child.kill("SIGTERM");
    await once(frozen.child, "exit");
  }
  await behind?.close();
});

async function startEndpoint(options: LocalStackOptions): Promise<typeof frozen> {
  const script = fileURLToPath(new URL("endpoint-process.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", script, JSON.stringify(options)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return { ...JSON.parse(line), child };
}

/** Programs that take a while, half of them right: enough for two workers to be in their middle for seconds. */
const programs = Array.from({ length: 40 }, (_, index) => ({
  source: `import time\ntime.sleep(0.4)\nprint(${index % 2 === 0 ? 1 : index + 2})`,
  reward: index % 2 === 0 ? 1 : 0,
}));
const body = JSON.stringify({
  run_id: "job",
  tasks: { one: { test_cases: [{ input: "", output: "1" }] } },
  samples: programs.map(({ source }) => ({ task: "one", completion: `\`\`\`python\n${source}\n\`\`\`` })),
  options: { deadline_ms: 240_000 },
});
const rightRewards = programs.map(({ reward }) => reward);

async function grade({ url, apiKey }: EndpointAddress) {
  const response = await fetch(`${url}/v1/rewards`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${apiKey}`,
      "content-type": "application/json",
      "idempotency-key": "step-1",
    },
    body,
  });
  return { status: response.status, body: (await response.json()) as { rewards?: number[]; code?: string } };
}

/** Asks as a trainer does: again while the first request with the key counts as under way. */
async function gradeInsisting(endpoint: EndpointAddress) {
  for (;;) {
    const answer = await grade(endpoint);
    if (answer.status !== 409 && answer.status !== 503) return answer;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

const busyWorkers = () =>
  new Set(
    behind.proxy.requests
      .filter(({ url, answer }) => url === "/v1/execute" && answer.includes('"ended"'))
      .map(({ sandboxId }) => sandboxId),
  );

it("changes nothing any more, and the batch that is sent again to another is graded right, once", async () => {
  await callEndpoint(frozen, "PUT", "/v1/runs/job", { name: "job", workers: 2 });
  const first = grade(frozen);
  await expect.poll(() => busyWorkers().size, { timeout: 30_000, interval: 50 }).toBe(2);
  frozen.child.kill("SIGSTOP");
  const frozenAtMs = performance.now();

  const again = gradeInsisting(behind.stack);
  while (performance.now() - frozenAtMs < frozenMs) {
    await callEndpoint(behind.stack, "POST", "/local/sweep");
    await new Promise((resolve) => setTimeout(resolve, isLong ? 10_000 : 1_000));
  }
  expect(await again).toMatchObject({ status: 200, body: { rewards: rightRewards } });
  const slotsBefore = await readSlots(behind);
  behind.proxy.requests.length = 0;

  frozen.child.kill("SIGCONT");
  const late = await first;
  // Whoever asked it is told that another attempt has the batch, or gets that one's answer; never one of its own.
  expect(late).toMatchObject({ status: 409, body: { code: "in_progress" } });
  const writes = behind.proxy.requests.filter(({ operation }) => operation === "UpdateItem");
  expect(writes.length, "writes that it tried").toBeGreaterThan(0);
  expect(await readSlots(behind)).toEqual(slotsBefore);
  expect(await grade(frozen)).toMatchObject({ status: 200, body: { rewards: rightRewards } });

  const verdicts = { passed: 20, wrong_output: 20 };
  expect(await callEndpoint(behind.stack, "DELETE", "/v1/runs/job")).toMatchObject({
    remaining_sandboxes: [],
    totals: { batches: 1, samples: 40, faults: 0, verdicts },
  });
  expect(behind.e2bServer.sandboxCounts()).toEqual({ running: 0, paused: 0 });
}, 400_000);
