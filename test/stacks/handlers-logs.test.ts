/** What the deployed functions say: enough to find a request's story, and nothing that is somebody's secret. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resolveE2bOptions } from "../../functions/adapters/e2b-options.ts";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import { connectionTo } from "../../functions/adapters/worker-access.ts";
import { workerOf } from "../../functions/pool/slot-row.ts";
import type { Container } from "./lambda/container.ts";
import { type Deployment, deploy } from "./lambda/deployment.ts";
import { grade, logOf, send } from "./lambda/requests.ts";
import { fetchTimeoutMs } from "./lambda/runtimes.ts";

let deployment: Deployment;
let rewards: Container;
let cleanup: Container;
let apiKey: string;

beforeAll(async () => {
  deployment = await deploy({ slots: 1 });
  apiKey = deployment.world.apiKey;
  rewards = await deployment.start("functions/reward.ts", "node24");
  cleanup = await deployment.start("functions/cleanup.ts", "node24", { timeoutMs: 60_000 });
}, fetchTimeoutMs);

afterAll(() => deployment?.close());

/** Texts that callers sent, wherever a text can be sent. Each stands for whatever else is in its place. */
const planted = {
  program: "planted-in-program",
  completion: "planted-in-completion",
  input: "planted-in-input",
  expected: "planted-in-expected",
  stdout: "planted-in-stdout",
  stderr: "planted-in-stderr",
  field: "planted-in-field",
  key: "planted-in-key",
  run: "planted-in-run",
};

const completionOf = (source: string) =>
  `${planted.completion}\n\`\`\`python\n# ${planted.program}\n${source}\n\`\`\``;
const task = {
  test_cases: [{ input: planted.input, output: JSON.stringify(planted.expected) }],
  limits: { time_ms: 60_000 },
};
const say = `import sys\nprint("planted-in-" + "stdout")\nprint("planted-in-" + "stderr", file=sys.stderr)\n`;
const programs = {
  wrong: say,
  crash: `${say}raise ValueError("planted-in-" + "stderr")`,
  syntaxError: `${planted.program} is no Python`,
};

/** The secrets of the platform: those of its configuration, and those of its only worker. */
async function platformSecrets(): Promise<string[]> {
  const { world } = deployment;
  const [row] = await world.slots();
  const worker = row === undefined ? null : workerOf(row);
  if (worker === null) throw new Error("there is no worker");
  const { headers } = connectionTo(resolveE2bOptions(world.e2b), worker);
  const { authorization = "", "e2b-traffic-access-token": token = "" } = headers;
  return [
    apiKey,
    world.e2b.apiKey,
    authorization.replace("Bearer ", ""),
    token,
    worker.access.split(" ")[0] ?? "",
  ];
}

const everythingSaid = () => [...rewards.said(), ...cleanup.said(), ...deployment.world.said()].join("\n");

async function expectNoSecret(secrets: readonly string[]): Promise<void> {
  expect(secrets.every((secret) => secret.length > 8)).toBe(true);
  const said = everythingSaid();
  expect([...Object.values(planted), ...secrets].filter((secret) => said.includes(secret))).toEqual([]);
}

describe("a log", () => {
  it("has the ids of each request and its run, and no secret of any batch", async () => {
    const metadata = { note: planted.run };
    await send(rewards, "/v1/runs/job-7", {
      method: "PUT",
      apiKey,
      body: JSON.stringify({ name: planted.run, metadata }),
    });
    const samples = Object.values(programs).map((source) => ({ task, completion: completionOf(source) }));
    const headers = { "x-request-id": "trace-8" };
    const batch = { run_id: "job-7", samples, options: { detail: "output" } };
    const answer = await (await grade(rewards, batch, { apiKey, headers })).text();
    expect(answer).toContain(planted.stdout); // so the texts have been where they could be logged
    expect(answer).toContain(planted.stderr);
    await cleanup.invoke({});
    await expectNoSecret(await platformSecrets());
    expect(logOf(rewards)).toMatchObject([
      {
        level: "INFO",
        message: "graded a batch",
        service: "code-rewards-test",
        function_request_id: expect.any(String),
        request_id: "trace-8",
        run_id: "job-7",
        samples: 3,
        faults: 0,
      },
      {
        _aws: {
          CloudWatchMetrics: [
            {
              Namespace: "CodeRewards",
              Dimensions: [["service"]],
              Metrics: expect.arrayContaining([
                { Name: "Samples", Unit: "Count" },
                { Name: "Faults", Unit: "Count" },
              ]),
            },
          ],
        },
        service: "code-rewards-test",
        Samples: 3,
        Faults: 0,
        request_id: "trace-8",
        run_id: "job-7",
      },
    ]);
  });

  it("tells of a worker's loss in the name of its request, with no secret", async () => {
    const secrets = await platformSecrets();
    const before = logOf(rewards).length;
    const headers = { "x-request-id": "trace-9" };
    const samples = [
      { task, completion: completionOf(`${say}sys.stdout.flush()\nimport time\ntime.sleep(50)`) },
    ];
    const options = { deadline_ms: 6_000 };
    const answer = grade(rewards, { run_id: "job-7", samples, options }, { apiKey, headers });
    const held = async () => (await deployment.world.slots())[0];
    await expect.poll(async () => (await held())?.state, { interval: 20 }).toBe("leased");
    await createE2bSandboxes(deployment.world.e2b).kill((await held())?.sandboxId ?? "");
    expect(await (await answer).json()).toMatchObject({ rewards: [null] });
    const lines = logOf(rewards).slice(before);
    expect(lines.length).toBeGreaterThan(1);
    for (const line of lines) expect(line).toMatchObject({ request_id: "trace-9", run_id: "job-7" });
    await expectNoSecret(secrets);
  });

  it.each<{ what: string; body: string | Buffer; headers?: Record<string, string> }>([
    { what: "an unknown field", body: JSON.stringify({ samples: [], [planted.field]: planted.field }) },
    {
      what: "a wrong value",
      body: JSON.stringify({ samples: [{ task: planted.field, completion: planted.completion }] }),
    },
    { what: "no JSON", body: `{"samples": ${planted.completion}` },
    {
      what: "cut gzip",
      body: gzipSync(planted.completion).subarray(0, 20),
      headers: { "content-encoding": "gzip" },
    },
    { what: "another media type", body: planted.completion, headers: { "content-type": planted.field } },
    { what: "a wrong key", body: "{}", headers: { authorization: `Bearer ${planted.key}` } },
    {
      what: "an odd request id",
      body: "{}",
      headers: { "x-request-id": `"${planted.field}" ${planted.field}` },
    },
  ])("says nothing of what a refused request contains: $what", async ({ body, headers = {} }) => {
    const refused = await grade(rewards, null, { apiKey, body, headers });
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.status).toBeLessThan(500);
    await expectNoSecret([]);
  });
});

describe("a function whose settings can't work", () => {
  const secret = "planted-in-settings";

  it.each([
    { what: "no key of E2B", environment: { E2B_API_KEY: "" }, detail: "E2B_API_KEY" },
    { what: "a wrong address", environment: { E2B_API_URL: secret }, detail: "E2B_API_URL" },
    { what: "a life too short", environment: { CODE_REWARDS_LIFE_MS: "1000" }, detail: "life" },
    {
      what: "no supervisor",
      environment: { CODE_REWARDS_SUPERVISOR_FOLDER: "elsewhere" },
      detail: "elsewhere",
    },
    {
      what: "keys without a key",
      environment: { CODE_REWARDS_API_KEYS: " , " },
      detail: "CODE_REWARDS_API_KEYS",
    },
  ])("answers that it is misconfigured, lives, and says so once: $what", async ({ environment, detail }) => {
    const broken = await deployment.start("functions/reward.ts", "node22", { environment });
    expect(broken.initError).toBeNull();
    expect((await fetch(`${broken.url}/healthz`)).status).toBe(200);
    const refused = await grade(broken, {}, { apiKey });
    expect({ status: refused.status, retryAfter: refused.headers.get("retry-after") }).toEqual({
      status: 503,
      retryAfter: null,
    });
    expect(refused.headers.get("content-type")).toBe("application/problem+json");
    const told = { code: "misconfigured", detail: expect.stringContaining(detail) };
    expect(await refused.json()).toMatchObject(told);
    expect(logOf(broken)).toEqual([expect.objectContaining({ level: "ERROR", ...told })]);
    expect(broken.said().join()).not.toContain(secret);
  });

  it("counts a stream that was begun before the table's silence refused it", async () => {
    const environment = { DYNAMODB_ENDPOINT: "http://127.0.0.1:1" };
    const alone = await deployment.start("functions/reward.ts", "node24", { environment });
    const headers = { accept: "application/x-ndjson" };
    const batch = { samples: [{ task, completion: completionOf(say) }], options: { deadline_ms: 10_000 } };
    const answer = await grade(alone, batch, { apiKey, headers });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('"store_unavailable"');
    const refused = { message: "a batch was not let in", code: "store_unavailable" };
    expect(logOf(alone)).toEqual(
      expect.arrayContaining([refused, { BatchesRefused: 1 }].map((line) => expect.objectContaining(line))),
    );
  });

  it("fails each pass of the sweep, and counts it", async () => {
    const broken = await deployment.start("functions/cleanup.ts", "node22", {
      environment: { E2B_API_KEY: "" },
    });
    const { kind, text } = await broken.invoke({});
    expect({ kind, error: JSON.parse(text).errorMessage }).toEqual({
      kind: "error",
      error: expect.stringContaining("E2B_API_KEY"),
    });
    expect(logOf(broken)).toMatchObject([{ level: "ERROR", code: "misconfigured" }, { SweepFailures: 1 }]);
  });
});
