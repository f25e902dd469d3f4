/** A batch is cancelled while the way to its worker, or E2B's API, fails. */
import { expect, it } from "vitest";
import { callEndpoint } from "../../functions/local/rewards-client.ts";
import { useFaultyStack } from "./fault-table.ts";
import type { Fault } from "./proxy/fault.ts";

const behind = useFaultyStack();

const faults: readonly Fault[] = [
  ...[400, 401, 403, 404, 409, 429, 500, 502, 503, 504].map((status): Fault => ({ kind: "answer", status })),
  { kind: "hang_before" },
];

function openBatch(key: string): Promise<{ status: number; body: unknown }> {
  const { url, apiKey } = behind().stack;
  const task = { test_cases: [{ input: "", output: "1" }], limits: { time_ms: 60_000 } };
  const completion = "```python\nimport time\ntime.sleep(50)\nprint(1)\n```";
  return fetch(`${url}/v1/rewards`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${apiKey}`,
      "content-type": "application/json",
      "idempotency-key": key,
    },
    body: JSON.stringify({ run_id: "sleepers", samples: [{ task, completion }] }),
  }).then(async (response) => ({ status: response.status, body: await response.json() }));
}

async function cancel(key: string): Promise<number> {
  const { url, apiKey } = behind().stack;
  const headers = { authorization: `Bearer ${apiKey}` };
  return (await fetch(`${url}/v1/batches/${key}`, { method: "DELETE", headers })).status;
}

/** Batches at work, each on a worker of its own. */
async function openBatches(count: number) {
  await callEndpoint(behind().stack, "PUT", "/v1/runs/sleepers", { name: "sleepers", workers: count });
  behind().proxy.requests.length = 0;
  const batches = Array.from({ length: count }, (_, index) => ({
    key: `k${count}-${index}`,
    answer: openBatch(`k${count}-${index}`),
  }));
  const atWork = () =>
    behind().proxy.requests.filter(
      ({ url, answer }) => url === "/v1/execute" && answer.includes('"started"'),
    );
  await expect.poll(() => atWork().length, { timeout: 45_000 }).toBe(count);
  return batches;
}

const cancelled = { status: 409, body: { code: "cancelled" } };

it("ends its worker, whatever the supervisor's confirmation meets", async () => {
  const batches = await openBatches(faults.length);
  let next = 0;
  const rule = behind().proxy.add({
    path: "supervisor",
    match: { url: "/v1/cancel" },
    fault: () => faults[next++] ?? null,
  });
  const statuses = await Promise.all(batches.map(({ key }) => cancel(key)));
  expect(statuses).toEqual(faults.map(() => 200));
  expect(rule.injected).toHaveLength(faults.length);
  for (const { answer } of batches) expect(await answer).toMatchObject(cancelled);
  // A worker that did not say that nothing runs any more is gone.
  await expect
    .poll(() => behind().e2bServer.sandboxCounts().running, { timeout: 10_000 })
    .toBeLessThanOrEqual(1);
}, 120_000);

it("says that it could not, each time, while the worker can't be ended either", async () => {
  const [batch] = await openBatches(1);
  if (batch === undefined) throw new Error("no batch");
  behind().proxy.add({
    path: "supervisor",
    match: { url: "/v1/cancel" },
    fault: { kind: "answer", status: 503 },
  });
  const kills = behind().proxy.add({
    path: "control",
    match: { method: "DELETE" },
    fault: { kind: "answer", status: 429 },
  });
  expect(await cancel(batch.key)).toBe(503);
  expect(await cancel(batch.key)).toBe(503);
  expect(kills.injected.length).toBeGreaterThanOrEqual(2);
  behind().proxy.clear();
  expect(await cancel(batch.key)).toBe(200);
  expect(await batch.answer).toMatchObject(cancelled);
  expect(await callEndpoint(behind().stack, "DELETE", "/v1/runs/sleepers")).toMatchObject({
    remaining_sandboxes: [],
  });
}, 120_000);
