/** The deployed functions' ways to E2B and the table: forgotten while a process is frozen, or closed to it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openClosedDoor } from "../faults/way.ts";
import type { Container } from "./lambda/container.ts";
import { type Deployment, deploy } from "./lambda/deployment.ts";
import { batchOf, countMarked, grade, markedSleep, readLines, send } from "./lambda/requests.ts";
import { fetchTimeoutMs, lambdaNodes } from "./lambda/runtimes.ts";
import { openWays, type Ways } from "./lambda/ways.ts";

const rewards = "functions/reward.ts";
/** Longer than any connection is kept by us, and shorter than networks need to forget what isn't frozen. */
const frozenMs = 6_000;

const pass = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(lambdaNodes)("on %s", (node) => {
  let deployment: Deployment;
  let apiKey: string;
  let ways: Ways;
  let container: Container;

  beforeAll(async () => {
    deployment = await deploy({ slots: 3 });
    apiKey = deployment.world.apiKey;
    ways = await openWays(deployment.world);
    container = await deployment.start(rewards, node, { environment: ways.environment });
  }, fetchTimeoutMs);

  afterAll(async () => {
    await deployment?.close();
    ways?.close();
  });

  const register = (name: string, workers: number) =>
    send(container, `/v1/runs/${name}`, { method: "PUT", apiKey, body: JSON.stringify({ name, workers }) });

  /** What a batch is answered, and how long that took. */
  async function timed(answer: Promise<Response>) {
    const startedAtMs = performance.now();
    const body = (await (await answer).json()) as Record<string, unknown>;
    return { body, tookMs: performance.now() - startedAtMs };
  }

  it("a batch after a freeze in which all flows were forgotten is right, at once, on the same worker", async () => {
    await grade(container, batchOf("print(1)"), { apiKey });
    container.freeze();
    ways.forget();
    await pass(frozenMs); // it is time itself that is tested
    const { body, tookMs } = await timed(grade(container, batchOf("print(1)"), { apiKey }));
    expect(body).toMatchObject({ rewards: [1], usage: { workers_created: 0, retries: 0 } });
    expect(tookMs).toBeLessThan(5_000);
  });

  it("workers that are wanted after such a freeze are created", { timeout: 60_000 }, async () => {
    expect(await (await register("two", 2)).json()).toMatchObject({ workers_ready: 2 });
    container.freeze();
    ways.forget();
    await pass(frozenMs);
    const startedAtMs = performance.now();
    expect(await (await register("three", 3)).json()).toMatchObject({ workers_ready: 3 });
    expect(performance.now() - startedAtMs).toBeLessThan(9_000); // E2B's shortest time limit is longer
  });

  it("a batch that was frozen in its middle, and its flows forgotten, ends right, and no worker is lost", {
    timeout: 90_000,
  }, async () => {
    const before = (await deployment.world.slots()).map(({ sandboxId }) => sandboxId);
    const headers = { accept: "application/x-ndjson" };
    const answer = grade(container, batchOf(markedSleep(3)), { apiKey, headers });
    await expect.poll(countMarked, { timeout: 10_000, interval: 20 }).toBe(1);
    container.freeze();
    ways.forget();
    await pass(frozenMs);
    const thawedAtMs = performance.now();
    const health = fetch(`${container.url}/healthz`);
    const lines = await readLines(await answer);
    expect(lines.at(-1)?.line).toMatchObject({ type: "summary", rewards: [1] });
    expect(performance.now() - thawedAtMs).toBeLessThan(45_000);
    expect((await health).status).toBe(200);
    expect((await deployment.world.slots()).map(({ sandboxId }) => sandboxId)).toEqual(before);
  });

  it("an edge that lets no connection through costs the pool no worker, and is named", {
    timeout: 60_000,
  }, async () => {
    await grade(container, batchOf("print(1)"), { apiKey });
    const door = await openClosedDoor();
    const shut = await deployment.start(rewards, node, { environment: { E2B_SANDBOX_URL: door.url } });
    const before = (await deployment.world.slots()).map(({ sandboxId }) => sandboxId);
    const batch = batchOf("print(1)", { options: { deadline_ms: 20_000 } });
    const { body } = await timed(grade(shut, batch, { apiKey }));
    door.close();
    expect(body).toMatchObject({ status: 503, code: "sandbox_unavailable" }); // nothing was started
    expect((await deployment.world.slots()).map(({ sandboxId }) => sandboxId)).toEqual(before);
    const after = await timed(grade(container, batchOf("print(1)"), { apiKey }));
    expect(after.body).toMatchObject({ rewards: [1], usage: { workers_created: 0, retries: 0 } });
  });
});
