/** The product behind the proxy: every path goes through it, and what happens on each is the product's to bear. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { requestRewards } from "../../functions/local/rewards-client.ts";
import { type ProxiedStack, startProxiedStack } from "./proxied-stack.ts";
import type { Fault, ServicePath } from "./proxy/fault.ts";

let behind: ProxiedStack;

beforeAll(async () => {
  behind = await startProxiedStack();
});
afterAll(async () => {
  expect(await behind.close()).toBe(0);
});

const batch = {
  samples: [{ task: { test_cases: [{ input: "", output: "1" }] }, completion: "```python\nprint(1)\n```" }],
};

it("all four paths are seen", async () => {
  expect(await requestRewards(behind.stack, batch)).toMatchObject({ rewards: [1] });
  expect(Object.values(behind.proxy.counts()).every((count) => count > 0)).toBe(true);
});

it.each<{ path: ServicePath; fault: Fault }>([
  { path: "supervisor", fault: { kind: "cut", afterBytes: 40 } },
  { path: "supervisor", fault: { kind: "reset_after" } },
  { path: "table", fault: { kind: "answer", status: 500 } },
  { path: "table", fault: { kind: "reset_after" } },
])("one $fault.kind on the path $path is borne", async ({ path, fault }) => {
  const rule = behind.proxy.add({ path, fault, match: { nth: 1 } });
  expect(await requestRewards(behind.stack, batch)).toMatchObject({ rewards: [1] });
  expect(rule.injected).toHaveLength(1);
  rule.remove();
});
