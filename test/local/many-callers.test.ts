/** Far more callers than workers, over HTTP, for a while. */
import { readdirSync, readlinkSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";

const callers = 200;
const workers = 4;
const lastsMs = Number(process.env.CALLERS_MS ?? 10_000);

setFlagsFromString("--expose_gc");
const collectGarbage = runInNewContext("gc") as () => void;

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
  const { rewards, faults } = JSON.parse(text);
  if (answer.status === 200 && rewards[0] === 1) return "answer";
  // Its program was under way when its time was up; had it not begun, the batch would have been refused.
  if (answer.status === 200 && rewards[0] === null && faults[0].code === "deadline_exceeded")
    return "answer that came too late";
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
  const calling = Promise.all(Array.from({ length: callers }, call));
  const looks: { heapMib: number; sockets: number }[] = [];
  for (const part of [0.3, 0.6, 0.9]) {
    await setTimeout(Math.max(0, endsAtMs - (1 - part) * lastsMs - performance.now()));
    collectGarbage();
    looks.push({ heapMib: process.memoryUsage().heapUsed / 1_048_576, sockets: countSockets() });
  }
  await calling;
  console.log(JSON.stringify({ outcomes: Object.fromEntries(outcomes), looks }));
  const right: readonly Outcome[] = ["answer", "answer that came too late", "503 with Retry-After"];
  expect([...outcomes.keys()].filter((outcome) => !right.includes(outcome))).toEqual([]);
  expect(outcomes.get("answer")).toBeGreaterThan(callers / 2);
  const [first, last] = [looks[0], looks.at(-1)];
  expect(last?.heapMib).toBeLessThan((first?.heapMib ?? 0) + 15);
  // Both ends of a connection are here: one each for the callers, up to fifty for the table, some for the workers.
  for (const { sockets } of looks) expect(sockets).toBeLessThan(2 * (callers + 50 + 50));
}, 120_000);
