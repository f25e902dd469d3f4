/**
 * Invocations in which nothing happens for a while: they pause, and wait for others.
 *
 * Node's event loop runs empty then, which each of AWS's clients takes for an end of another kind: the older one answers
 * in the function's place and goes on with the next event, the newer one's process ends.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import type { Table } from "../../functions/pool/ports.ts";
import { registerRun } from "../../functions/pool/runs/register.ts";
import { plans, poolSettings } from "../../functions/pool/settings.ts";
import type { SlotContext } from "../../functions/pool/slots/write.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import { type Deployment, deploy } from "./lambda/deployment.ts";
import { batchOf, grade, logOf, send, sleepThenPrint } from "./lambda/requests.ts";
import { fetchTimeoutMs, lambdaClients, lambdaNodes } from "./lambda/runtimes.ts";

const platforms = lambdaClients.flatMap((client) => lambdaNodes.map((node) => ({ client, node })));
const cleanup = "functions/cleanup.ts";
const rewards = "functions/reward.ts";
const scheduled = { "detail-type": "Scheduled Event" };
const createIntervalMs = 1_500;

function tableContext(table: Table): SlotContext {
  const settings = poolSettings(plans.hobby, { supervisorVersion: "of-nobody" });
  return { table, clock: systemClock, newId: () => "owner", settings };
}

describe.each(platforms)("with the runtime's client $client on $node", ({ client, node }) => {
  let deployment: Deployment;
  let control: FaultProxy;
  let apiKey: string;

  beforeAll(async () => {
    deployment = await deploy({ slots: 3 });
    apiKey = deployment.world.apiKey;
    control = await startFaultProxy({ control: deployment.world.e2b.apiUrl });
  }, fetchTimeoutMs);

  afterAll(async () => {
    await deployment?.close();
    await control?.close();
  });

  const start = (entry: string, more: Readonly<Record<string, string>> = {}) =>
    deployment.start(entry, node, {
      client,
      timeoutMs: 60_000,
      environment: { CODE_REWARDS_CREATE_INTERVAL_MS: String(createIntervalMs), ...more },
    });

  const register = (name: string, workers: number) =>
    registerRun(tableContext(deployment.world.table), name, { name, workers, metadata: {} });
  const countLeased = async () =>
    (await deployment.world.slots()).filter(({ state }) => state === "leased").length;

  it("a sleep alone is an end, in this test's world as on Lambda", async () => {
    const sleepers = await start("test/stacks/lambda/sleepers.ts");
    const answer = sleepers.invoke({}).catch((error: Error) => error.message);
    expect(await answer).toEqual(client === 3 ? { kind: "response", text: "null" } : "the runtime has ended");
  });

  it("a pass that is refused, backs off and keeps to the pace makes all three workers", {
    timeout: 90_000,
  }, async () => {
    const answers = await start(rewards);
    const registered = send(answers, "/v1/runs/job", {
      method: "PUT",
      apiKey,
      body: JSON.stringify({ name: "job", workers: 3 }),
    });
    // The endpoint creates some by itself, in the background of its own pauses.
    expect(await (await registered).json()).toMatchObject({ run_id: "job", workers_ready: 3 });
    expect((await send(answers, "/v1/runs/job", { method: "DELETE", apiKey })).status).toBe(200);
    expect(deployment.world.sandboxes()).toBe(0);

    await register("next", 3);
    control.add({
      path: "control",
      match: { method: "POST", nth: [1, 2] },
      fault: { kind: "answer", status: 503 },
    });
    const pass = await start(cleanup, { E2B_API_URL: control.controlUrl });
    expect(await pass.invoke(scheduled)).toEqual({ kind: "response", text: "null" });
    expect(logOf(pass)[0]).toMatchObject({ message: "swept the pool", did: { created: 3 }, faultCount: 2 });
    expect(logOf(pass)[0]?.wallMs).toBeGreaterThan(2 * createIntervalMs);
    expect(deployment.world.sandboxes()).toBe(3);
    // It is free at once: nothing of the pass goes on in its background.
    const startedAtMs = performance.now();
    expect(await pass.invoke(scheduled)).toEqual({ kind: "response", text: "null" });
    expect(performance.now() - startedAtMs).toBeLessThan(2_000);
  });

  it("a batch waits for a worker that another holds, and its process is free after its answer", async () => {
    await register("narrow", 1);
    const [holder, waiter] = [await start(rewards), await start(rewards)];
    const run = { run_id: "narrow" };
    const held = grade(holder, batchOf(sleepThenPrint(3), run), { apiKey });
    await expect.poll(countLeased, { timeout: 20_000, interval: 20 }).toBe(1);
    const waited = grade(waiter, batchOf("print(1)", run), { apiKey });
    expect(await (await waited).json()).toMatchObject({ rewards: [1] });
    const answeredAtMs = performance.now();
    expect((await fetch(`${waiter.url}/healthz`)).status).toBe(200);
    expect(performance.now() - answeredAtMs).toBeLessThan(1_000);
    expect(await (await held).json()).toMatchObject({ rewards: [1] });
  });
});
