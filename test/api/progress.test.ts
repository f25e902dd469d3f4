/** A stream's signs of life, with a clock that the test moves. */
import { describe, expect, it } from "vitest";
import type { GradeBatch } from "../../functions/rewards/batch.ts";
import { settle } from "../rewards/virtual-clock.ts";
import { createTestApp, post, type TestApp, type TestAppOptions } from "./test-app.ts";

const longestGapMs = 10_000;
const minuteMs = 60_000;

type Line = Readonly<Record<string, unknown>>;

function requestOf(samples: number) {
  const one = (index: number) => ({ task: "t", completion: `\`\`\`python\nright ${index}\n\`\`\`` });
  return {
    tasks: { t: { test_cases: [{ input: "1", output: "1" }] } },
    samples: Array.from({ length: samples }, (_, index) => one(index)),
  };
}

async function openStream(testApp: TestApp, samples: number) {
  const answer = await post(testApp, requestOf(samples), { accept: "application/x-ndjson" });
  return (answer.body as ReadableStream<Uint8Array>).getReader();
}

const graded = { kind: "graded", reward: 1, passed: 1, cases: [] } as const;
const usage = {
  wallMs: 0,
  queueMs: 0,
  workers: 0,
  workerSeconds: 0,
  workersCreated: 0,
  retries: 0,
  programsRun: 0,
  duplicates: 0,
};
const untilUnwanted: TestAppOptions["onAcquire"] = (_, signal) =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(null), { once: true }));

/** All samples have their results, and what follows takes its time. */
const closesSlowly: GradeBatch = async ({ samples }, { signal, onSample }) => {
  for (const index of samples.keys()) onSample?.(index, graded);
  const stopped = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(new Error("stopped")), { once: true });
  });
  return stopped;
};

describe("a stream has a line at least every 10 s", () => {
  it.each<[string, TestAppOptions, number]>([
    ["while all workers are somebody else's", { capacity: 0 }, 0],
    ["while its request for a worker is under way", { onAcquire: untilUnwanted }, 0],
    ["while a program runs", { script: () => ({ kind: "hang" }) }, 0],
    ["while records are written after the last result", { gradeBatch: closesSlowly }, 3],
  ])("%s", async (_, options, done) => {
    const testApp = createTestApp(options);
    const reader = await openStream(testApp, 3);
    const startMs = testApp.clock.nowMs();
    let lastMs = startMs;
    const gapsMs: number[] = [];
    const lines: Line[] = [];
    const reading = (async () => {
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        gapsMs.push(testApp.clock.nowMs() - lastMs);
        lastMs = testApp.clock.nowMs();
        lines.push(...readLines(piece.value));
      }
    })();
    for (let passedMs = 0; passedMs < minuteMs; passedMs += 1_000) await testApp.clock.advance(1_000);
    await settle();
    gapsMs.push(testApp.clock.nowMs() - lastMs);
    expect(Math.max(...gapsMs)).toBeLessThan(longestGapMs);
    const progress = lines.filter(({ type }) => type === "progress");
    expect(progress.length).toBeGreaterThanOrEqual(minuteMs / longestGapMs);
    expect(progress.at(-1)).toEqual({ type: "progress", done, total: 3 });
    await reader.cancel();
    await reading;
    await settle();
    expect(testApp.clock.sleepers()).toBe(0);
  });

  it("that wait for a slow reader, in order, none lost, and nothing after the summary", async () => {
    const samples = 2_000;
    let finish = () => {};
    const gate = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const testApp = createTestApp({
      gradeBatch: async (batch, { onSample }) => {
        for (const index of batch.samples.keys()) {
          onSample?.(index, graded);
          if (index % 100 === 0) await testApp.clock.sleep(3_000);
        }
        await gate;
        return { rewards: batch.samples.map(() => 1), usage };
      },
    });
    const reader = await openStream(testApp, samples);
    await testApp.clock.advance(2 * minuteMs); // meanwhile nobody reads
    finish();
    await settle();
    await testApp.clock.advance(minuteMs);
    const lines: Line[] = [];
    for (let piece = await reader.read(); !piece.done; piece = await reader.read())
      lines.push(...readLines(piece.value));
    const results = lines.filter(({ type }) => type === "result").map(({ index }) => index);
    expect(results).toEqual(Array.from({ length: samples }, (_, index) => index));
    const told = lines.filter(({ type }) => type === "progress").map(({ done }) => done as number);
    expect(told.length).toBeGreaterThanOrEqual(12);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
    expect(lines.map(({ type }) => type).indexOf("summary")).toBe(lines.length - 1);
    expect(testApp.clock.sleepers()).toBe(0);
  });
});

function readLines(piece: Uint8Array): Line[] {
  const text = new TextDecoder().decode(piece);
  expect(text.endsWith("\n"), "only whole lines are sent").toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}
