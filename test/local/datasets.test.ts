/** Tasks in the shapes of public datasets, through the whole product over HTTP. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RequestExample } from "../../functions/api/request-examples.ts";
import { requestRewards, type SampleLine } from "../../functions/local/rewards-client.ts";
import { type LocalStack, startLocalStack } from "../../functions/local/stack.ts";
import { functionExamples } from "../../functions/tasks/examples/function-examples.ts";
import { stdinExamples } from "../../functions/tasks/examples/stdin-examples.ts";

const shapes = [...stdinExamples, ...functionExamples];

let stack: LocalStack;
let examples: Record<string, RequestExample>;

beforeAll(async () => {
  stack = await startLocalStack({ port: 0 });
  const answer = await fetch(`${stack.url}/openapi.json`);
  // biome-ignore lint/suspicious/noExplicitAny: a document, of which one part is looked at.
  const description = (await answer.json()) as any;
  examples = description.paths["/v1/rewards"].post.requestBody.content["application/json"].examples;
});

afterAll(async () => {
  expect(await stack.emptyPool()).toEqual([]);
  await stack.close();
});

function fence(source: string): string {
  return `\`\`\`python\n${source}\n\`\`\``;
}

async function grade(samples: readonly unknown[], tasks = {}) {
  const lines: SampleLine[] = [];
  const answer = await requestRewards(stack, { tasks, samples }, (line) => lines.push(line));
  return { ...answer, lines: lines.sort((a, b) => a.index - b.index) };
}

describe("an example of the interface's description", () => {
  it.each([...shapes.map(({ name }) => name), "test_cases", "settings"])(
    "%s gives a right program 1 and a wrong one 0",
    async (name) => {
      const { rewards } = await requestRewards(stack, examples[name]?.value);
      expect(rewards).toEqual([1, 0]);
    },
  );

  it("is among these", () => {
    const known = [...shapes.map(({ name }) => name), "test_cases", "settings"];
    expect(Object.keys(examples).sort()).toEqual(known.sort());
  });
});

describe("a task's settings", () => {
  it("are kept to by real programs", async () => {
    const sum = { test_cases: [{ input: "1 2", output: "3" }] };
    const slow = "import time\ntime.sleep(1)\nprint(3)";
    const fat = "x = b'x' * (120 << 20)\nprint(3)";
    const samples = [
      { task: { ...sum, limits: { time_limit: "3 seconds" } }, completion: fence(slow) },
      { task: { ...sum, limits: { time_limit: 0.25 } }, completion: fence(slow) },
      { task: { ...sum, limits: { memory_limit: "256 megabytes" } }, completion: fence(fat) },
      { task: { ...sum, limits: { memory_limit_bytes: 64_000_000 } }, completion: fence(fat) },
    ];
    const { lines } = await grade(samples);
    const found = lines.map(({ reward, verdicts }) => [reward, verdicts?.[0]?.verdict]);
    expect(found).toEqual([
      [1, "passed"],
      [0, "time_limit"],
      [1, "passed"],
      [0, "memory_limit"],
    ]);
  });

  it("stop a program at its first failure, and say what was not run", async () => {
    const test_cases = Array.from({ length: 40 }, (_, n) => ({ input: `${n}`, output: `${n}` }));
    const scoring = { type: "all_or_nothing", fail_fast: true };
    const tasks = { echo: { test_cases, scoring } };
    const sources = ["print(input())", "print(int(input()) // 2 * 2)", "print(min(int(input()), 38))"];
    const { lines, rewards } = await grade(
      sources.map((source) => ({ task: "echo", completion: fence(source) })),
      tasks,
    );
    expect(rewards).toEqual([1, 0, 0]);
    const counts = lines.map(
      ({ verdicts = [] }) => verdicts.filter(({ verdict }) => verdict === "not_run").length,
    );
    expect(counts[0]).toBe(0);
    expect(
      counts[1],
      "its second case fails: of 40 no more than the first portion is run",
    ).toBeGreaterThanOrEqual(36);
    expect(lines.map(({ verdicts }) => verdicts?.length)).toEqual([40, 40, 40]);
    expect(lines[2]?.verdicts?.[39]?.verdict).toBe("wrong_output");
  });
});
