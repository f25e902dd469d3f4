/** A run from its registration to its end, over two handlers of one embedded stack. */
import { Sandbox } from "e2b";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";

let stacks: readonly [LocalStack, LocalStack];

beforeAll(async () => {
  const first = await startLocalStack({ port: 0, slots: 4, cron: false, apiKey: "key" });
  const { e2b, dynamoDbEndpoint } = first;
  stacks = [
    first,
    await startLocalStack({ port: 0, slots: 4, cron: false, apiKey: "key", e2b, dynamoDbEndpoint }),
  ];
});

afterAll(async () => {
  for (const stack of [...(stacks ?? [])].reverse()) await stack.close();
});

async function send(rank: number, method: string, path: string, body?: unknown) {
  const answer = await fetch(`${stacks[rank % 2]?.url}${path}`, {
    method,
    headers: { authorization: "Bearer key", "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: compared field by field
  return { status: answer.status, body: (await answer.json()) as any };
}

it("is one run however many ranks speak of it, and leaves nothing", async () => {
  const ranks = Array.from({ length: 16 }, (_, rank) => rank);
  const started = await Promise.all(ranks.map((rank) => send(rank, "PUT", "/v1/runs/job-7", { workers: 2 })));
  expect(started.map(({ status }) => status).toSorted()).toEqual([...Array(15).fill(200), 201]);
  expect(started.map(({ body }) => body.workers_ready)).toEqual(Array(16).fill(2));
  expect(await Sandbox.list(stacks[0].e2b).nextItems()).toHaveLength(2);

  const task = { test_cases: [{ input: "1", output: "1" }] };
  const sample = (source: string) => ({ task, completion: `\`\`\`python\n${source}\n\`\`\`` });
  const samples = ["print(input())", "print(input())", "raise ValueError", "print("].map(sample);
  const graded = await send(1, "POST", "/v1/rewards", { run_id: "job-7", samples });
  expect(graded.body.rewards).toEqual([1, 1, 0, 0]);
  expect(graded.body.usage.cost_usd).toBeGreaterThan(0);
  const run = await send(0, "GET", "/v1/runs/job-7");
  expect(run.body).toMatchObject({
    state: "active",
    totals: { batches: 1, samples: 4, verdicts: { passed: 2, runtime_error: 1 }, faults: 0 },
  });

  const ended = await Promise.all(ranks.map((rank) => send(rank, "DELETE", "/v1/runs/job-7")));
  for (const { status, body } of ended) {
    expect(status).toBe(200);
    expect(body).toMatchObject({ remaining_sandboxes: [], totals: { batches: 1 } });
  }
  expect(await Sandbox.list(stacks[0].e2b).nextItems()).toEqual([]);
  expect(await send(3, "POST", "/v1/runs/job-7/heartbeat")).toMatchObject({
    status: 409,
    body: { code: "run_finished" },
  });
}, 60_000);
