/** What the product asks of E2B and of the table, what it does when they take a worker away, and what it never tells. */
import { Sandbox } from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDynamoDb } from "../../functions/local/dynamodb.ts";
import { type E2bServer, startE2bServer } from "../../functions/local/e2b/server.ts";
import { type GradedBatch, requestRewards, type SampleLine } from "../../functions/local/rewards-client.ts";
import { type LocalStackProcess, startLocalStackProcess } from "../bench/local-stack-process.ts";
import { benchTask, writeProgram } from "../bench/programs.ts";
import type { SeenRequest } from "../faults/proxy/fault.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";

const apiKey = "e2b_key_that_nobody_may_see";
const killerMark = "this program ends its worker";

let e2b: E2bServer;
let table: Awaited<ReturnType<typeof startDynamoDb>>;
let proxy: FaultProxy;
let stack: LocalStackProcess;
/** Everything that the product said: its log, and its answers. */
const said: string[] = [];
const killed = new Set<SeenRequest>();

/** Kills the sandbox in which the marked program has just started, as often as it does. */
function killWorkersOfKillers(request: SeenRequest): void {
  const { path, sandboxId } = request;
  if (killed.has(request) || path !== "supervisor" || sandboxId === null) return;
  if (!request.body.includes(killerMark) || !hasKillerStarted(request)) return;
  killed.add(request);
  const direct = { apiKey, apiUrl: e2b.apiUrl };
  void Sandbox.kill(sandboxId, direct);
}

function hasKillerStarted({ body, answer }: SeenRequest): boolean {
  const { programs } = JSON.parse(body) as { programs: { id: string; source: string }[] };
  const id = programs.find(({ source }) => source.includes(killerMark))?.id;
  return answer.includes(`{"type":"started","program":${JSON.stringify(id)}`);
}

beforeAll(async () => {
  const plan = { createsPerSecond: 100, concurrentSandboxes: 20 };
  e2b = await startE2bServer({ apiKey, plan });
  table = await startDynamoDb({ port: 0 });
  proxy = await startFaultProxy({
    control: e2b.apiUrl,
    sandbox: e2b.sandboxUrl,
    table: table.endpoint,
    onAnswer: killWorkersOfKillers,
  });
  stack = await startLocalStackProcess(["--plan", "pro"], {
    E2B_API_KEY: apiKey,
    ...proxy.environment,
  });
  stack.child.stderr?.on("data", (data) => said.push(String(data)));
});

afterAll(async () => {
  await stack.stop();
  await proxy.close();
  await table.close();
  await e2b.close();
});

async function grade(batch: unknown): Promise<GradedBatch & { lines: SampleLine[] }> {
  const lines: SampleLine[] = [];
  const answer = await requestRewards(stack, batch, (line) => lines.push(line));
  said.push(JSON.stringify(answer), JSON.stringify(lines));
  return { ...answer, lines: lines.sort((a, b) => a.index - b.index) };
}

function countSeen() {
  const { control, envd, supervisor, table: toTable } = proxy.counts();
  const writes = seenOn("table").filter(({ operation }) => /UpdateItem|PutItem/.test(operation ?? ""));
  return { toE2b: control + envd + supervisor, toTable, writes: writes.length };
}

const seenOn = (...paths: SeenRequest["path"][]) => proxy.requests.filter(({ path }) => paths.includes(path));

function oneCase(source: string, output: string) {
  return { task: { test_cases: [{ input: "", output }] }, completion: `\`\`\`python\n${source}\n\`\`\`` };
}

describe("what a batch costs", () => {
  it("is at most 0.2 requests a program, and 2 table writes a leased worker besides one for the run", async () => {
    const batch = (from: number) => ({
      tasks: { totals: benchTask },
      samples: Array.from({ length: 64 }, (_, i) => ({ task: "totals", completion: writeProgram(from + i) })),
    });
    // Until both workers are there and were used: then each is leased again without a look at the pool.
    let warm = (await grade(batch(0))).usage;
    for (let from = 64; warm.workers < 2 || warm.workers_created > 0; from += 64) {
      if (from > 640) throw new Error("the run's second worker is never used");
      warm = (await grade(batch(from))).usage;
    }
    const before = countSeen();
    const { rewards, usage } = await grade(batch(10_000));
    const after = countSeen();
    expect(rewards).toEqual(Array(64).fill(1));
    const toE2b = after.toE2b - before.toE2b;
    const toTable = after.toTable - before.toTable;
    const writes = after.writes - before.writes;
    console.log(
      `64 programs on ${usage.workers} workers: ${toE2b} requests to E2B, ${toTable} to the table, ${writes} of them writes`,
    );
    expect((toE2b + toTable) / 64).toBeLessThanOrEqual(0.2);
    expect(writes).toBeLessThanOrEqual(2 * usage.workers + 1);
  });
});

describe("a program that ends its worker", () => {
  it("is null and not worth another try, and nobody else suffers", async () => {
    const honest = Array.from({ length: 30 }, (_, i) => oneCase(`print(${i})`, `${i}`));
    const killer = oneCase(`import time  # ${killerMark}\ntime.sleep(1.5)\nprint(1)`, "1");
    const samples = [...honest.slice(0, 15), killer, ...honest.slice(15)];
    const { rewards, lines, usage } = await grade({ samples });
    expect(rewards).toEqual(samples.map((_, i) => (i === 15 ? null : 1)));
    expect(lines[15]).toMatchObject({ status: "fault", fault: { code: "worker_lost", retryable: false } });
    expect([2, 3], "one more where two went within two seconds").toContain(killed.size);
    expect(usage.retries).toBeGreaterThan(0);
  }, 60_000);
});

describe("secrets", () => {
  it("are in nothing that the product says", async () => {
    const refusal = await fetch(`${stack.url}/readyz`, {
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    said.push(await refusal.text());
    const created = seenOn("control").filter(
      ({ method, url }) => method === "POST" && url === "/v2/sandboxes",
    );
    const tokens = created.flatMap(({ answer }) => {
      const { envdAccessToken, trafficAccessToken } = JSON.parse(answer);
      return [envdAccessToken, trafficAccessToken];
    });
    const bearers = seenOn("envd", "supervisor").map(({ headers }) =>
      headers.authorization?.replace("Bearer ", ""),
    );
    const secrets = [...new Set([apiKey, ...tokens, ...bearers])].filter((secret) => secret !== undefined);
    expect(secrets.length).toBeGreaterThan(6);
    const everything = said.join("\n");
    expect(everything.length).toBeGreaterThan(1_000);
    expect(secrets.filter((secret) => everything.includes(secret))).toEqual([]);
    // In the table, which only the product's owner reads, there are no worker secrets either.
    const rows = seenOn("table")
      .map(({ body, answer }) => body + answer)
      .join("\n");
    expect(bearers.filter((secret) => secret && rows.includes(secret))).toEqual([]);
  });
});
