/** An answer is through before the platform ends its request, however long it is, at the pace of a function's URL. */
import { describe, expect, it } from "vitest";
import type { Clock } from "../../functions/rewards/ports.ts";
import { createTestApp, jsonHeaders, post, type TestApp } from "./test-app.ts";

const endsInMs = 300_000;
const burstBytes = 6_000_000;
const bytesPerMs = 2_000;
/** What stopping programs, giving workers back and writing records may take after grading. */
const closingWorkMs = 20_000;

/** Each program prints so many control characters, which are six bytes each in JSON. */
const printedCharacters = 250_000;
const printed = "\u0001".repeat(printedCharacters);

function requestOf(programs: number) {
  const one = (index: number) => ({ task: "t", completion: `\`\`\`python\nloud ${index}\n\`\`\`` });
  return {
    tasks: { t: { test_cases: [{ input: "1", output: "1" }], limits: { output_bytes: 1_048_576 } } },
    samples: Array.from({ length: programs }, (_, index) => one(index)),
    options: { detail: "output", deadline_ms: 840_000 },
  };
}

/** An app whose programs take so long each, and print much from some time on. */
function appOf(programMs: number, loudFromMs: number): TestApp {
  const time: { clock?: Clock } = {};
  let startMs = 0;
  const testApp = createTestApp({
    endsInMs,
    script: async () => {
      await time.clock?.sleep(programMs);
      const isLoud = testApp.clock.nowMs() - startMs >= loudFromMs;
      return { kind: "print", stdout: isLoud ? printed : "1" };
    },
    beforeRelease: async () => void (await time.clock?.sleep(closingWorkMs / 2)),
  });
  time.clock = testApp.clock;
  startMs = testApp.clock.nowMs();
  return testApp;
}

/** Reads a body as a function's URL lets it through; when its last byte was, counted from `startMs`. */
async function readSlowly(body: ReadableStream<Uint8Array>, clock: Clock, startMs: number) {
  let bytes = 0;
  let last = Buffer.alloc(0);
  for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
    const slowly = Math.min(piece.length, Math.max(0, bytes + piece.length - burstBytes));
    bytes += piece.length;
    await clock.sleep(slowly / bytesPerMs);
    last = Buffer.concat([last, piece]).subarray(-100_000);
  }
  return { bytes, throughAtMs: clock.nowMs() - startMs, end: last.toString() };
}

/** Moves time on until it is done. */
async function letPass<Value>(clock: TestApp["clock"], work: Promise<Value>): Promise<Value> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  for (let second = 0; !isDone && second < 1_000; second += 1) await clock.advance(1_000);
  return done;
}

describe("an answer that takes half a minute to send", () => {
  it.each([
    ["as JSON", "application/json", 3_000, 0],
    ["as a stream whose results come faster than they are sent", "application/x-ndjson", 500, 230_000],
  ])("is through before the platform's end, %s", async (_, accept, programMs, loudFromMs) => {
    const testApp = appOf(programMs, loudFromMs);
    const startMs = testApp.clock.nowMs();
    const asked = Promise.resolve(post(testApp, requestOf(1_500), { ...jsonHeaders, accept }));
    const { bytes, throughAtMs, end } = await letPass(
      testApp.clock,
      asked.then((answer) => {
        expect(answer.status).toBe(200);
        return readSlowly(answer.body as ReadableStream<Uint8Array>, testApp.clock, startMs);
      }),
    );
    expect(bytes).toBeGreaterThan(40_000_000);
    expect(throughAtMs).toBeLessThan(endsInMs);
    expect(throughAtMs).toBeGreaterThan(endsInMs / 2); // and the time was used
    expect(end.includes("deadline_exceeded"), "it was ended early").toBe(true);
    expect(end.trimEnd().endsWith("}")).toBe(true);
  });
});

describe("an answer that is short", () => {
  it("has all of the time that the platform leaves but for what closing takes", async () => {
    const testApp = createTestApp({ endsInMs, script: () => ({ kind: "hang" }) });
    const startMs = testApp.clock.nowMs();
    const asked = Promise.resolve(post(testApp, { ...requestOf(1), options: { deadline_ms: 840_000 } }));
    const answer = await letPass(testApp.clock, asked);
    expect(await answer.json()).toMatchObject({ rewards: [null] });
    expect(testApp.clock.nowMs() - startMs).toBe(endsInMs - 30_000);
  });
});
