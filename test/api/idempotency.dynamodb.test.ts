/** Answers of ten thousand samples under one key, over the embedded table: twenty callers, and the death of a holder. */
import { setTimeout } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { createKeyedWorld, type KeyedWorld } from "./keyed-world.ts";
import { jsonHeaders } from "./test-app.ts";

let world: KeyedWorld;

afterEach(async () => {
  expect(world.reported).toEqual([]);
  await world.close();
});

type Container = ReturnType<KeyedWorld["container"]>;

const callers = 20;
const samples = 10_000;

function bodyOf(detail: string): string {
  const test_cases = ["1", "2", "3"].map((text) => ({ input: text, output: text }));
  return JSON.stringify({
    tasks: { t: { test_cases } },
    samples: Array.from({ length: samples }, (_, index) => ({
      task: "t",
      completion: `\`\`\`python\nprint(${index})\n\`\`\``,
    })),
    options: { detail },
  });
}

function send({ app }: Container, body: string, more: Record<string, string> = {}) {
  const headers = { ...jsonHeaders, "idempotency-key": "step/1", ...more };
  return app.request("/v1/rewards", { method: "POST", headers, body });
}

/** Sends until the answer is another than `in_progress`; time between two tries is told, and passes more quickly. */
async function insist(container: Container, body: string): Promise<{ text: string; refusals: number }> {
  for (let refusals = 0; ; refusals += 1) {
    const answer = await send(container, body);
    const text = await answer.text();
    if (answer.status === 200) return { text: text.replace(/,"request_id":"[^"]+"\}$/, ""), refusals };
    expect([answer.status, JSON.parse(text).code]).toEqual([409, "in_progress"]);
    expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    await setTimeout(1_000);
  }
}

describe(`an answer of ${samples} samples under a key`, () => {
  it.each(["verdicts", "output"])(
    "with %s is the same for twenty callers, though the first container died over it",
    async (detail) => {
      world = await createKeyedWorld();
      const [dead, ...survivors] = [world.container(), world.container(), world.container()];
      const body = bodyOf(detail);
      const reached = dead.holdAt(2_000);
      Promise.resolve(send(dead, body)).catch(() => {});
      await reached;
      dead.kill();
      const tooEarly = await send(survivors[0] as Container, body);
      expect(tooEarly.status).toBe(409);
      world.moveClocks(65_100);
      const answers = await Promise.all(
        Array.from({ length: callers }, (_, caller) => insist(survivors[caller % 2] as Container, body)),
      );
      const texts = new Set(answers.map(({ text }) => text));
      expect(texts.size).toBe(1);
      const [text = ""] = texts;
      const answer = JSON.parse(`${text}}`);
      expect(answer.rewards).toEqual(new Array(samples).fill(1));
      expect(answer.results).toHaveLength(samples);
      expect(answer.results[7].verdicts).toHaveLength(3);
      expect(answer.usage.programs_run).toBe(samples);
      // The dead attempt's cases, and each of the surviving one's once.
      expect(world.ran).toHaveLength(2_000 + 3 * samples);
      expect(new Set(world.ran.slice(2_000)).size).toBe(3 * samples);
      expect(answers.filter(({ refusals }) => refusals === 0).length).toBeLessThan(callers);
    },
    120_000,
  );

  it("is streamed from its record in lines that say the same", async () => {
    world = await createKeyedWorld();
    const body = bodyOf("verdicts");
    const one = world.container();
    const first = (await (await send(one, body)).json()) as { results: unknown[]; usage: unknown };
    const again = await send(world.container(), body, { accept: "application/x-ndjson" });
    const lines = (await again.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const { rewards, usage } = lines.pop();
    expect({ rewards, usage }).toEqual({ rewards: new Array(samples).fill(1), usage: first.usage });
    const results: unknown[] = [];
    for (const { type: _, index, ...sample } of lines) results[index] = sample;
    expect(results).toEqual(first.results);
    expect(world.ran).toHaveLength(3 * samples);
  }, 60_000);
});

describe("an answer that is longer than a record may be", () => {
  it("is given, and not recorded: the batch runs again", async () => {
    world = await createKeyedWorld();
    // Numbers that no compressor makes shorter than 4 MiB.
    const digits = () => Array.from({ length: 7_000 }, () => Math.random().toString().slice(2, 11)).join("");
    const test_cases = Array.from({ length: 200 }, () => ({ input: digits(), output: "1" }));
    const sample = { task: { test_cases }, completion: "```python\nprint(1)\n```" };
    const body = JSON.stringify({ samples: [sample], options: { detail: "output" } });
    const { gzipSync } = await import("node:zlib");
    const headers = { ...jsonHeaders, "idempotency-key": "step/1", "content-encoding": "gzip" };
    const zipped = gzipSync(body);
    expect(zipped.length).toBeLessThan(6 * 1024 * 1024);
    for (const ran of [1, 2]) {
      const { app } = world.container();
      const answer = await app.request("/v1/rewards", { method: "POST", headers, body: zipped });
      expect(await answer.json()).toMatchObject({ rewards: [0] });
      expect(world.ran).toHaveLength(ran * test_cases.length);
    }
  }, 60_000);
});
