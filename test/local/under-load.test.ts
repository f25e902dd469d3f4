/** Right programs on a machine that has too much to do: what others take is not their time. */
import { type ChildProcess, spawn } from "node:child_process";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { listHostCpus } from "../../functions/local/host-cpus.ts";
import { callEndpoint, requestRewards } from "../../functions/local/rewards-client.ts";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";

const rightPrograms = 1_000;
const computing = 2 * listHostCpus().length;

let stack: LocalStack;
let strangers: ChildProcess[] = [];

beforeAll(async () => {
  stack = await startLocalStack({ port: 0, plan: "pro", cron: false });
});

afterEach(() => {
  for (const stranger of strangers.splice(0)) stranger.kill("SIGKILL");
});

afterAll(async () => {
  expect(await stack.emptyPool()).toEqual([]);
  await stack.close();
});

const fence = (source: string) => `\`\`\`python\n${source}\n\`\`\``;

/**
 * Quick ones, one in ten that computes for 50 ms, and some that need more than half of their limit, which a clock on the
 * wall would deny them; one in twenty says what its neighbour says.
 */
function writeRight(index: number): string {
  const variant = index % 20 === 19 ? index - 1 : index;
  const workMs = variant % 500 === 0 ? 900 : variant % 10 === 0 ? 50 : 0;
  const work = `while time.process_time() < ${workMs / 1_000}: pass`;
  return fence(`import time\nn = int(input())\n${work}\nprint(n * 2)  # ${variant}`);
}

const right = Array.from({ length: rightPrograms }, (_, index) => writeRight(index));
const endless = Array.from({ length: 3 * computing }, (_, index) =>
  fence(`n = ${index}\nwhile True: n += 1`),
);

/** What is said of each sample, in order. */
async function grade(completions: readonly string[], runId = "default"): Promise<string[]> {
  const said: string[] = [];
  const batch = {
    run_id: runId,
    tasks: { double: { test_cases: [{ input: "21", output: "42" }], limits: { time_ms: 2_000 } } },
    samples: completions.map((completion) => ({ task: "double", completion })),
  };
  await requestRewards(stack, batch, ({ index, reward, status, fault, verdicts = [] }) => {
    said[index] = [reward ?? fault?.code, status, ...verdicts.map(({ verdict }) => verdict)].join(" ");
  });
  return said;
}

function count(said: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const what of said) counts[what] = (counts[what] ?? 0) + 1;
  return counts;
}

const allRight = { "1 graded passed": rightPrograms };
/** What has no end and gets too little of a CPU is told from what had its time. */
const ofEndless = ["0 graded time_limit", "starved fault"];

describe("of 1,000 right programs each gets its reward", () => {
  it("beside twice as many computing processes of others as there are cores", async () => {
    strangers = Array.from({ length: computing }, () =>
      spawn("python3", ["-c", "while True: pass"], { stdio: "ignore" }),
    );
    expect(count(await grade(right))).toEqual(allRight);
  }, 120_000);

  it("beside programs without an end, in their own batch and on twice as many workers as cores", async () => {
    await callEndpoint(stack, "PUT", "/v1/runs/crowd", { workers: computing });
    const crowd = grade(endless.slice(computing), "crowd");
    const said = await grade([...right, ...endless.slice(0, computing)]);
    expect(count(said.slice(0, rightPrograms))).toEqual(allRight);
    const others = [...said.slice(rightPrograms), ...(await crowd)];
    expect(others).toHaveLength(endless.length);
    expect(others.filter((what) => !ofEndless.includes(what))).toEqual([]);
  }, 120_000);
});
