/** Answers as they are recorded: nothing is lost, nothing is written twice, and nothing too long is kept. */
import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createAnswerRecorder, readRecordedAnswer } from "../../functions/api/recorded-answer.ts";
import { encodeSample } from "../../functions/api/rewards-answer.ts";
import type { SampleResult, Usage } from "../../functions/rewards/batch.ts";

const usage: Usage = {
  wallMs: 1,
  queueMs: 2,
  workers: 3,
  workerSeconds: 4,
  workersCreated: 5,
  retries: 6,
  programsRun: 7,
  duplicates: 8,
};

const noProgram: SampleResult = { kind: "no_program", reward: 0, reason: "no_fenced_block", total: 3 };
const syntaxError: SampleResult = { kind: "syntax_error", reward: 0, reason: "line 1: no", total: 3 };

function graded(cases: number, stdout?: string): SampleResult {
  const single = () => ({
    verdict: { kind: "passed" } as const,
    wallMs: Math.random() * 100,
    cpuMs: Math.random() * 100,
    peakRssKib: 9_000,
    ...(stdout === undefined ? {} : { stdout, stderrTail: "…\u2028\n" }),
  });
  return { kind: "graded", reward: 1, passed: cases, cases: Array.from({ length: cases }, single) };
}

async function record(results: readonly SampleResult[], limitBytes?: number) {
  const recorder = createAnswerRecorder("output", limitBytes);
  for (const [index, result] of results.entries()) recorder.add(index, result);
  try {
    return await recorder.finish({ rewards: [], usage });
  } finally {
    recorder.discard();
  }
}

async function read(bytes: Uint8Array | null) {
  const samples: unknown[] = [];
  const usages: unknown[] = [];
  for await (const part of readRecordedAnswer(bytes ?? new Uint8Array())) {
    if (part.kind === "usage") usages.push(part.usage);
    else samples[part.index] = part.sample;
  }
  return { samples, usages };
}

/** What the answer says of a result. */
function said(result: SampleResult | undefined): unknown {
  return result && JSON.parse(JSON.stringify(encodeSample(result, "output")));
}

describe("a recorded answer", () => {
  it.each([
    ["of one sample", [graded(2)]],
    ["of every kind of result", [graded(1), noProgram, syntaxError]],
    ["of many samples", Array.from({ length: 2_000 }, () => graded(3))],
    ["of long lines", [graded(1, "x".repeat(300_000)), graded(200, "☃\n\u{1f600}".repeat(500))]],
    ["of outputs that can't be compressed", [graded(1, randomBytes(200_000).toString("base64"))]],
  ])("%s is read as it was written", async (_, results) => {
    const { samples, usages } = await read(await record(results));
    expect(samples).toEqual(results.map(said));
    expect(usages).toHaveLength(1);
    expect(usages[0]).toMatchObject({ wall_ms: 1, programs_run: 7 });
  });

  it("has a result that samples share once", async () => {
    const shared = graded(100);
    const one = await record([shared]);
    const many = await record(Array.from({ length: 10_000 }, () => shared));
    expect((await read(many)).samples).toHaveLength(10_000);
    expect(many?.length).toBeLessThan((one?.length ?? 0) + 30_000);
  });

  it("is none when it is too long, whatever of it was written by then", async () => {
    const short = Array.from({ length: 100 }, () => graded(3));
    const long = Array.from({ length: 5_000 }, () => graded(3));
    expect(await record(short, 1_000)).toBeNull();
    expect(await record(long, 50_000)).toBeNull();
    expect(await record(long, 4 * 1024 * 1024)).not.toBeNull();
  });

  it("of ten thousand samples takes little memory beside its own bytes", async () => {
    const recorder = createAnswerRecorder("verdicts");
    const before = process.memoryUsage();
    let most = 0;
    for (let index = 0; index < 10_000; index += 1) {
      recorder.add(index, graded(3));
      if (index % 100 !== 0) continue;
      await new Promise(setImmediate); // samples end one after another
      const { external, arrayBuffers } = process.memoryUsage();
      most = Math.max(most, external + arrayBuffers - before.external - before.arrayBuffers);
    }
    const bytes = await recorder.finish({ rewards: [], usage });
    console.log(`10,000 samples of three verdicts: ${bytes?.length} bytes, ${most} beside the heap`);
    expect(bytes?.length).toBeLessThan(1_000_000);
    expect(most).toBeLessThan(8 * 1024 * 1024);
  });
});
