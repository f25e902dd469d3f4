/** The whole product over HTTP: endpoint, table, sandboxes, supervisors, in the way in which a trainer uses it. */
import { describe, expect, it } from "vitest";
import { requestRewards, type SampleLine } from "../../functions/local/rewards-client.ts";
import { benchTask, writeProgram } from "../bench/programs.ts";
import { honestPrograms } from "./honest-programs.ts";
import { shareStack } from "./shared-stack.ts";

const stack = shareStack();

function fence(source: string): string {
  return `\`\`\`python\n${source}\n\`\`\``;
}

function oneCase(source: string, input: string, output: string, limits = {}) {
  return { task: { test_cases: [{ input, output }], limits }, completion: fence(source) };
}

async function grade(samples: readonly unknown[], tasks = {}) {
  const lines: SampleLine[] = [];
  const answer = await requestRewards(stack(), { tasks, samples }, (line) => lines.push(line));
  return { ...answer, lines: lines.sort((a, b) => a.index - b.index) };
}

const hostilePrograms: readonly { name: string; source: string; verdict: string; timeMs?: number }[] = [
  { name: "computes for ever", source: "while True: pass", verdict: "time_limit" },
  { name: "sleeps for ever", source: "import time\ntime.sleep(1000)", verdict: "time_limit" },
  { name: "prints for ever", source: "while True: print('x' * 1000)", verdict: "output_limit" },
  {
    name: "hoards",
    source: "x = []\nwhile True: x.append(b'x' * (1 << 20))",
    verdict: "memory_limit",
    timeMs: 10_000,
  },
  {
    name: "is a fork bomb",
    source: "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    verdict: "time_limit",
  },
  { name: "crashes", source: "import ctypes\nctypes.string_at(0)", verdict: "signaled" },
  { name: "raises", source: "print(1)\nraise ValueError", verdict: "runtime_error" },
  {
    name: "kills everybody",
    source:
      "import os\nfor target in (-1, 0, 1):\n    try: os.kill(target, 9)\n    except OSError: pass\nprint(2)",
    verdict: "wrong_output",
  },
  {
    name: "leaves a daemon that prints",
    source:
      "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(0.2)\n    print(1, flush=True)",
    verdict: "wrong_output",
  },
];

describe("a batch over HTTP", () => {
  it("scores right programs 1 that naive harnesses break", async () => {
    const samples = honestPrograms.map(({ source, input = "", output }) => oneCase(source, input, output));
    const { lines } = await grade(samples);
    expect(
      lines.map(({ index, reward, verdicts }) => [
        honestPrograms[index]?.name,
        reward,
        verdicts?.[0]?.verdict,
      ]),
    ).toEqual(honestPrograms.map(({ name }) => [name, 1, "passed"]));
  });

  it("scores hostile programs 0 among honest ones that all score 1", async () => {
    const honest = (i: number) => oneCase(`print(${i})`, "", `${i}`);
    const hostile = hostilePrograms.map(({ source, timeMs = 400 }) =>
      oneCase(source, "", "1", { time_ms: timeMs, memory_mib: 256 }),
    );
    const samples = hostile.flatMap((sample, i) => [honest(2 * i), sample, honest(2 * i + 1)]);
    const { lines } = await grade(samples);
    const found = hostilePrograms.map(({ name }, i) => {
      const [before, own, after] = lines.slice(3 * i, 3 * i + 3);
      return [name, before?.reward, own?.reward, own?.verdicts?.[0]?.verdict, after?.reward];
    });
    expect(found).toEqual(hostilePrograms.map(({ name, verdict }) => [name, 1, 0, verdict, 1]));
  });

  it("keeps the order and runs equal programs once", async () => {
    const samples = Array.from({ length: 60 }, (_, i) => ({
      task: "totals",
      completion: i % 3 === 2 ? "no program here" : writeProgram(i % 3),
    }));
    const { rewards, usage } = await grade(samples, { totals: benchTask });
    expect(rewards).toEqual(samples.map((_, i) => (i % 3 === 2 ? 0 : 1)));
    expect(usage.programs_run).toBe(2);
  });

  it("gives right rewards when a sandbox is destroyed in mid-batch", async () => {
    const samples = Array.from({ length: 40 }, (_, i) =>
      oneCase(`import time\ntime.sleep(0.05)\nprint(${i})`, "", `${i}`),
    );
    let destroyed: Promise<boolean> | undefined;
    const answer = await requestRewards(stack(), { samples }, () => {
      destroyed ??= destroyOneSandbox();
    });
    expect(await destroyed).toBe(true);
    expect(answer.rewards).toEqual(samples.map(() => 1));
    expect(answer.usage.retries).toBeGreaterThan(0);
  });

  it("sweeps the pool for those with a key only", async () => {
    const sweep = (headers: Record<string, string>) =>
      fetch(`${stack().url}/local/sweep`, { method: "POST", headers });
    expect((await sweep({ authorization: `Bearer ${stack().apiKey}` })).status).toBe(200);
    const refused = await sweep({});
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ code: "unauthorized" });
  });

  it("stops the programs of a caller who went away", async () => {
    const gone = new AbortController();
    const asked = fetch(`${stack().url}/v1/rewards`, {
      method: "POST",
      signal: gone.signal,
      headers: { authorization: `Bearer ${stack().apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        samples: [oneCase("import time\ntime.sleep(50)", "", "1", { time_ms: 60_000 })],
      }),
    });
    await expect.poll(countLeased, { timeout: 5_000 }).toBe(1);
    gone.abort();
    await expect(asked).rejects.toThrow();
    await expect.poll(countLeased, { timeout: 2_000 }).toBe(0);
    const { rewards } = await grade([oneCase("print(1)", "", "1")]);
    expect(rewards).toEqual([1]);
  });
});

async function destroyOneSandbox(): Promise<boolean> {
  const { Sandbox } = await import("e2b");
  const [sandbox] = await Sandbox.list(stack().e2b).nextItems();
  return sandbox ? Sandbox.kill(sandbox.sandboxId, stack().e2b) : false;
}

async function countLeased(): Promise<number> {
  const answer = await fetch(`${stack().url}/readyz`, {
    headers: { authorization: `Bearer ${stack().apiKey}` },
  });
  const { checks } = (await answer.json()) as { checks: { pool: { leased: number } } };
  return checks.pool.leased;
}
