/** What the soak takes for a violation: every kind of it must be found, and nothing else. */

import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { serveOnLoopback } from "../local/loopback.ts";
import { sendBatch } from "./endpoint.ts";
import { findGrowth, slopePerMinute, type TimedVitals } from "./growth.ts";
import { openLedger, type Refusal, type SampleFault } from "./ledger.ts";
import { type KnownSample, makeSample } from "./programs.ts";
import { createRandom } from "./random.ts";

const sampleOf = (reward: number): KnownSample => ({
  kind: "right",
  name: "a sum",
  task: { test_cases: [] },
  completion: "",
  reward,
});
const lost: SampleFault = { code: "worker_lost", retryable: true };

describe("a reward", () => {
  it.each<{ truth: number; reward: number | null; fault?: SampleFault; found: string[] }>([
    { truth: 1, reward: 1, found: [] },
    { truth: 1 / 3, reward: 1 / 3, found: [] },
    { truth: 0, reward: 0, found: [] },
    { truth: 1, reward: null, fault: lost, found: [] },
    { truth: 1, reward: 0, found: ["false zero"] },
    { truth: 1, reward: 2 / 3, found: ["false zero"] },
    { truth: 0, reward: 1, found: ["false one"] },
    { truth: 1 / 3, reward: 2 / 3, found: ["false one"] },
    { truth: 1, reward: null, found: ["null without a fault of the platform"] },
    {
      truth: 1,
      reward: null,
      fault: { code: "invalid_task", retryable: false },
      found: ["null without a fault of the platform"],
    },
    { truth: 1, reward: 1, fault: lost, found: ["a reward and a fault"] },
  ])(
    "of $reward where $truth is right, with the fault $fault.code, is $found",
    ({ truth, reward, fault, found }) => {
      const ledger = openLedger(() => 0);
      ledger.noteReward(sampleOf(truth), reward, fault);
      expect(ledger.violations.map(({ what }) => what)).toEqual(found);
      expect(ledger.counts.falseZeros).toBe(found.filter((what) => what === "false zero").length);
      expect(ledger.counts.falseOnes).toBe(found.filter((what) => what === "false one").length);
    },
  );
});

describe("a refusal", () => {
  it.each<Partial<Refusal> & { found: string[] }>([
    { status: 503, code: "no_capacity", retryAfterS: 5, found: [] },
    { status: 409, code: "in_progress", retryAfterS: 2, found: [] },
    { status: 503, code: "store_unavailable", retryAfterS: null, found: ["refused without a time to retry"] },
    { status: 500, code: "store_unavailable", retryAfterS: 1, found: ["refused what is in order"] },
    { status: 500, code: "internal", retryAfterS: null, found: ["refused what is in order"] },
    { status: 503, code: "misconfigured", retryAfterS: null, found: ["refused what is in order"] },
    { status: 422, code: "invalid_request", retryAfterS: null, found: ["refused what is in order"] },
    { status: 0, code: "no answer", retryAfterS: null, found: ["refused what is in order"] },
  ])("of $status $code, again after $retryAfterS s, is $found", ({ found, ...refusal }) => {
    const ledger = openLedger(() => 0);
    ledger.noteRefusal({ status: 0, code: "", retryAfterS: null, detail: "", ...refusal });
    expect(ledger.violations.map(({ what }) => what)).toEqual(found);
  });
});

describe("an answer", () => {
  const line = (value: object) => `${JSON.stringify(value)}\n`;
  const result = line({ type: "result", index: 0, reward: 1 });
  const summary = line({ type: "summary", rewards: [1] });
  it.each<{ what: string; body: string; stream: boolean; outcome: object }>([
    { what: "whole", body: result + summary, stream: true, outcome: { kind: "answered", rewards: [1] } },
    {
      what: "cut in a line",
      body: (result + summary).slice(0, -1),
      stream: true,
      outcome: { kind: "broken" },
    },
    { what: "without its last line", body: result, stream: true, outcome: { kind: "broken" } },
    { what: "that lacks a result", body: summary, stream: true, outcome: { kind: "broken" } },
    {
      what: "that contradicts itself",
      body: line({ type: "result", index: 0, reward: 0 }) + summary,
      stream: true,
      outcome: { kind: "broken" },
    },
    {
      what: "with a result twice",
      body: result + result + summary,
      stream: true,
      outcome: { kind: "broken" },
    },
    {
      what: "that ends in an error",
      body: result + line({ type: "error", status: 503, code: "no_capacity", detail: "", retry_after_s: 5 }),
      stream: true,
      outcome: { kind: "refused", code: "no_capacity", retryAfterS: 5 },
    },
    {
      what: "as JSON",
      body: JSON.stringify({ rewards: [null], faults: [{ index: 0, ...lost }] }),
      stream: false,
      outcome: { kind: "answered", rewards: [null], faults: new Map([[0, lost]]) },
    },
    {
      what: "as JSON that contradicts itself",
      body: JSON.stringify({ rewards: [1], results: [{ reward: 0 }] }),
      stream: false,
      outcome: { kind: "broken" },
    },
    { what: "that isn't JSON", body: "<html>", stream: false, outcome: { kind: "broken" } },
  ])("$what is read as what it is", async ({ body, stream, outcome }) => {
    const app = new Hono().post("/v1/rewards", (c) => c.body(body));
    const { url, close } = await serveOnLoopback(app);
    expect(await sendBatch({ url, apiKey: "k" }, { body: {}, stream, idempotencyKey: null })).toMatchObject(
      outcome,
    );
    await close();
  });
});

describe("a process", () => {
  const mib = 1_048_576;
  const still = { heapBytes: 40 * mib, rssBytes: 150 * mib, sockets: 30, descriptors: 22, timers: 10 };
  const over = (change: (at: number) => Partial<TimedVitals>): TimedVitals[] =>
    Array.from({ length: 40 }, (_, i) => ({ ...still, ...change(i), atS: i * 5 }));

  it.each<{ what: string; change: (at: number) => Partial<TimedVitals>; grown: string[] }>([
    { what: "stays as it is", change: () => ({}), grown: [] },
    {
      what: "warms up",
      change: (at) => ({ heapBytes: (at < 8 ? 20 : 40) * mib, sockets: at < 8 ? 5 : 30 }),
      grown: [],
    },
    {
      what: "breathes",
      change: (at) => ({ heapBytes: (40 + (at % 5)) * mib, sockets: 20 + (at % 7) }),
      grown: [],
    },
    { what: "keeps objects", change: (at) => ({ heapBytes: (40 + at) * mib }), grown: ["heapBytes"] },
    { what: "keeps connections", change: (at) => ({ sockets: 20 + 8 * at }), grown: ["sockets"] },
    { what: "keeps files", change: (at) => ({ descriptors: 22 + at }), grown: ["descriptors"] },
    { what: "keeps timers", change: (at) => ({ timers: 10 + 30 * at }), grown: ["timers"] },
  ])("that $what: $grown", ({ change, grown }) => {
    const problems = findGrowth(over(change), still);
    expect(problems.map((problem) => problem.split(" ")[0])).toEqual(grown);
  });

  it("that never lets go of what it used is found when it is quiet", () => {
    expect(findGrowth([], { ...still, sockets: 500 })).toEqual(["sockets: 500 when it is quiet"]);
  });

  it("has a slope", () => {
    expect(
      slopePerMinute(
        over((at) => ({ heapBytes: 5 * at })),
        "heapBytes",
      ),
    ).toBeCloseTo(60);
  });
});

describe("samples", () => {
  it("are the same for the same seed, and of every kind", () => {
    const make = (seed: number) => {
      const random = createRandom(seed);
      return Array.from({ length: 400 }, () => makeSample(random));
    };
    expect(make(1)).toEqual(make(1));
    expect(make(2)).not.toEqual(make(1));
    const kinds = new Map(make(1).map(({ kind, reward }) => [`${kind} ${Math.round(reward * 3)}`, true]));
    expect([...kinds.keys()].toSorted()).toEqual([
      "broken 0",
      "broken 1",
      "broken 2",
      "hostile 0",
      "hostile 3",
      "right 3",
    ]);
  });
});
