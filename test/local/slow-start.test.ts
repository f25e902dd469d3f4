/** A start that has to wait for the services that it was pointed at. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { startDynamoDb } from "../../functions/local/dynamodb.ts";
import { type E2bServer, startE2bServer } from "../../functions/local/e2b/server.ts";
import { startLocalStackProcess } from "../bench/local-stack-process.ts";
import type { Fault } from "../faults/proxy/fault.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";

let e2b: E2bServer;
let table: Awaited<ReturnType<typeof startDynamoDb>>;
let proxy: FaultProxy;

beforeEach(async () => {
  e2b = await startE2bServer({ apiKey: "e2b_local", plan: "pro" });
  table = await startDynamoDb({ port: 0 });
  proxy = await startFaultProxy({ control: e2b.apiUrl, sandbox: e2b.sandboxUrl, table: table.endpoint });
});
afterEach(async () => {
  await proxy?.close();
  await table?.close();
  await e2b?.close();
});

it.each<{ what: string; path: "control" | "table"; fault: Fault }>([
  { what: "throttles creations", path: "control", fault: { kind: "answer", status: 429 } },
  { what: "is too busy", path: "control", fault: { kind: "answer", status: 503 } },
  { what: "loses its connection", path: "table", fault: { kind: "reset_before" } },
])("at a service that first $what comes to its end", async ({ path, fault }) => {
  const rule = proxy.add({ path, fault, match: { method: "POST", nth: 1 } });
  const stack = await startLocalStackProcess(["--plan", "pro", "--no-cron"], proxy.environment);
  rule.remove();
  expect(rule.injected).toHaveLength(1);
  expect((await fetch(`${stack.url}/healthz`)).status).toBe(200);
  await stack.stop();
});
