/** Far more callers than workers, over HTTP, for a while. */
import { readdirSync, readlinkSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";

const callers = 200;
const workers = 4;
const lastsMs = Number(process.env.CALLERS_MS ?? 10_000);

let stack: LocalStack;

beforeAll(async () => {
  stack = await startLocalStack({ port: 0, slots: workers, cron: false, apiKey: "key" });
  const headers = { authorization: "Bearer key", "content-type": "application/json" };
  const body = JSON.stringify({ workers });
  await fetch(`${stack.url}/v1/runs/busy`, { method: "PUT", headers, body });
});

afterAll(async () => {
  expect(await stack.emptyPool()).toEqual([]);
  await stack.close();
});

const batch = JSON.stringify({
  run_id: "busy",
  samples: [
    {
      task: { test_cases: [{ input: "", output: "1" }] },
      completion: "```python\nprint(1)\n```",
    },
  ],
  options: { deadline_ms: 3_000, detail: "rewards" },
});

type Outcome = "answer" | "503 with Retry-After" | string;

async function callOnce(): Promise<Outcome> {
  const answer = await fetch(`${stack.url}/v1/rewards`, {
    method: "POST",
    headers: { authorization: "Bearer key", "content-type": "application/json" },
    body: batch,
  });
  const text = await answer.text();
  if (answer.status === 200 && JSON.parse(text).rewards[0] === 1) return "answer";
  if (answer.status === 503 && Number(answer.headers.get("retry-after")) > 0) return "503 with Retry-After";
  return `${answer.status}: ${text}`;
}

function countSockets(): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith("socket:");
    } catch {
      return false; // it was closed while we looked
    }
  }).length;
}

it("gets nothing but answers and 503 with Retry-After, in flat memory and sockets", async () => {
  const outcomes = new Map<Outcome, number>();
  const endsAtMs = performance.now() + lastsMs;
  const call = async () => {
    while (performance.now() < endsAtMs) {
      const outcome = await callOnce().catch((error: unknown) => `no answer: ${String(error)}`);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  };
  const looks: { heapMib: number; sockets: number }[] = [];
  const look = setInterval(() => {
    looks.push({ heapMib: process.memoryUsage().heapUsed / 1_048_576, sockets: countSockets() });
  }, 100);
  await Promise.all(Array.from({ length: callers }, call));
  clearInterval(look);
  const third = Math.floor(looks.length / 3);
  const [second, last] = [looks.slice(third, 2 * third), looks.slice(2 * third)];
  const lowestHeap = [second, last].map((part) => Math.min(...part.map(({ heapMib }) => heapMib)));
  const mostSockets = [second, last].map((part) => Math.max(...part.map(({ sockets }) => sockets)));
  console.log(JSON.stringify({ outcomes: Object.fromEntries(outcomes), lowestHeap, mostSockets }));
  expect([...outcomes.keys()].filter((outcome) => outcome !== "answer")).toEqual(
    outcomes.has("503 with Retry-After") ? ["503 with Retry-After"] : [],
  );
  expect(outcomes.get("answer")).toBeGreaterThan(callers / 2);
  expect(lowestHeap[1]).toBeLessThan((lowestHeap[0] ?? 0) + 30);
  expect(mostSockets[1]).toBeLessThanOrEqual((mostSockets[0] ?? 0) + 10);
}, 120_000);
