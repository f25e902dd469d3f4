import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { Fault, type FaultCode } from "../../functions/rewards/faults.ts";
import { answerTo, readLines, requestFor, start, threeCases, twoOfThree } from "./echo-app.ts";
import { post, readProblem, rightRequest, type TestAppOptions } from "./test-app.ts";

describe("POST /v1/rewards", () => {
  it("answers with one reward per sample, in order, and says what happened to each", async () => {
    const request = requestFor(["right", "third", "crash", "segv", "broken", "starved"]);
    request.samples.push({ task: "t", completion: "I don't know." });
    const { rewards, results, usage } = await answerTo(start(twoOfThree), request);
    expect(rewards).toEqual([1, 1 / 3, 0, 0, 0, null, 0]);
    const measures = { wall_ms: 4, cpu_ms: 3, peak_rss_kib: 9000 };
    const verdicts = (verdict: object) => [0, 1, 2].map(() => ({ ...verdict, ...measures }));
    expect(results).toEqual([
      { reward: 1, status: "graded", passed: 3, total: 3, verdicts: verdicts({ verdict: "passed" }) },
      expect.objectContaining({ reward: 1 / 3, status: "graded", passed: 1, total: 3 }),
      {
        reward: 0,
        status: "graded",
        passed: 0,
        total: 3,
        verdicts: verdicts({ verdict: "runtime_error", exit_code: 3 }),
      },
      {
        reward: 0,
        status: "graded",
        passed: 0,
        total: 3,
        verdicts: verdicts({ verdict: "signaled", signal: "SIGSEGV" }),
      },
      { reward: 0, status: "syntax_error", reason: "line 1: invalid syntax", passed: 0, total: 3 },
      {
        reward: null,
        status: "fault",
        fault: { code: "starved", detail: expect.any(String), retryable: true },
      },
      { reward: 0, status: "no_program", reason: "no_fenced_block", passed: 0, total: 3 },
    ]);
    expect(usage).toMatchObject({ programs_run: 6, duplicates: 0, retries: 3, workers_created: 0 });
  });

  it("takes a completion that is too long for that sample's own affair", async () => {
    const request = requestFor(["right", "right"]);
    const { rewards, results } = await answerTo(start(), {
      ...request,
      samples: [request.samples[0], { task: "t", completion: "`".repeat(1_000_000) }, request.samples[1]],
    });
    expect(rewards).toEqual([1, 0, 1]);
    expect(results?.[1]).toMatchObject({ status: "no_program", reason: "too_large" });
  });

  it("leaves results out when only rewards are wanted, and lists the faults", async () => {
    const body = requestFor(["right", "starved"], { detail: "rewards" });
    const answer = await answerTo(start(twoOfThree), body);
    expect(answer).toMatchObject({
      rewards: [1, null],
      faults: [{ index: 1, code: "starved", retryable: true }],
    });
    expect(answer).not.toHaveProperty("results");
  });

  it("adds outputs when they are wanted", async () => {
    const { results } = await answerTo(start(), requestFor(["right"], { detail: "output" }));
    expect(results?.[0]?.verdicts?.[1]).toMatchObject({
      verdict: "passed",
      stdout: "1",
      stderr_tail: "tail",
    });
  });

  it("takes tasks inline, chats, gzip, and a batch for the default run", async () => {
    const completion = [
      { role: "user", content: "Please.", name: "somebody" },
      {
        role: "assistant",
        content: [
          { type: "image", url: "x" },
          { type: "text", text: "```py\nright\n```" },
        ],
        tool_calls: [],
      },
    ];
    const samples = [
      { task: { test_cases: threeCases }, completion },
      { task: { test_cases: threeCases }, completion: [{ role: "assistant", content: null }] },
    ];
    const bytes = gzipSync(JSON.stringify({ run_id: "default", samples }));
    const answer = await post(start(), bytes, { "content-encoding": "gzip" });
    expect((await answer.json()) as object).toMatchObject({ rewards: [1, 0] });
  });

  it.each([
    ["one part", [1]],
    ["two parts, the last one short", [0.99, 0.01]],
    ["many parts", new Array<number>(50).fill(0.02)],
  ])("takes gzip of %s", async (_, shares) => {
    const samples = Array.from({ length: 300 }, (__, index) => ({
      task: "t",
      completion: `${"é数".repeat(5 * index)}\n\`\`\`\nright ${index}\n\`\`\``,
    }));
    const text = Buffer.from(JSON.stringify({ tasks: { t: { test_cases: threeCases } }, samples }));
    let from = 0;
    const parts = shares.map((share, index) => {
      const to = index === shares.length - 1 ? text.length : from + Math.floor(share * text.length);
      const part = gzipSync(text.subarray(from, to));
      from = to;
      return part;
    });
    const answer = await post(start(), Buffer.concat(parts), { "content-encoding": "gzip" });
    expect((await answer.json()) as object).toMatchObject({ rewards: samples.map(() => 1) });
  });

  it("hands options and limits on to where they count", async () => {
    const testApp = start();
    const request = requestFor(["right"], { extraction: "last", reasoning: "none", deadline_ms: 5_000 });
    const limits = { time_ms: 10, memory_mib: 448, output_bytes: 1 };
    Object.assign(request.tasks.t, { limits });
    request.samples[0] = {
      task: "t",
      completion: "<think>\n```python\nwrong\n```\n</think>\n```python\nright\n```\n```python\ncrash\n```",
    };
    expect(await answerTo(testApp, request)).toMatchObject({ rewards: [0] });
    expect(testApp.workers.chunks[0]?.chunk).toMatchObject({
      deadlineMs: 5_000,
      programs: [{ source: "crash\n", limits: { timeMs: 10, memoryMib: 448, outputBytes: 1 } }],
    });
  });

  it("leaves out reasoning in tags of the caller's own", async () => {
    const testApp = start();
    const request = requestFor(["right"], { reasoning: { tags: ["plan"] } });
    request.samples[0] = {
      task: "t",
      completion: "<plan>\n```python\nwrong\n```\n</plan>\n```python\nright\n```",
    };
    expect(await answerTo(testApp, request)).toMatchObject({ rewards: [1] });
  });

  it("fills in defaults", async () => {
    const testApp = start();
    await answerTo(testApp, requestFor(["right"]));
    expect(testApp.workers.chunks[0]?.chunk).toMatchObject({
      deadlineMs: 600_000,
      programs: [{ limits: { timeMs: 2_000, memoryMib: 192, outputBytes: 65_536 } }],
    });
  });

  it("takes values at the ends of their ranges", async () => {
    const text = JSON.stringify("x".repeat(1_048_574));
    const body = {
      tasks: {
        ["k".repeat(200)]: {
          test_cases: [{ input: text, output: text }],
          limits: { time_ms: 60_000, memory_mib: 32, output_bytes: 1_048_576 },
        },
      },
      samples: [{ task: "k".repeat(200), completion: `\`\`\`\nright\n\`\`\`${" ".repeat(262_131)}` }],
      options: { deadline_ms: 840_000 },
    };
    expect(await answerTo(start(), body)).toMatchObject({ rewards: [1] });
  });

  it("takes a long chat, of which only the last message counts", async () => {
    const completion = [
      { role: "user", content: "x".repeat(300_000) },
      { role: "assistant", content: "```\nright\n```" },
    ];
    expect(
      await answerTo(start(), { ...rightRequest(), samples: [{ task: "sum", completion }] }),
    ).toMatchObject({
      rewards: [1],
    });
  });

  it("knows no run but the default one yet", async () => {
    const testApp = start();
    const answer = await post(testApp, { ...rightRequest(), run_id: "job-7" });
    expect(answer.status).toBe(404);
    expect(await readProblem(answer)).toMatchObject({ code: "run_not_found" });
    expect(testApp.workers.acquires).toEqual([]);
  });

  it("grades ten thousand samples in little time of its own", async () => {
    const request = requestFor(
      Array.from({ length: 10_000 }, (_, index) => `right ${index}`),
      { detail: "rewards" },
    );
    request.tasks.t.test_cases = threeCases.slice(0, 1);
    const testApp = start();
    const before = process.cpuUsage();
    const { rewards } = await answerTo(testApp, request);
    const { user, system } = process.cpuUsage(before);
    expect(rewards).toEqual(request.samples.map(() => 1));
    expect(
      (user + system) / 1_000 / 10_000,
      "CPU ms a sample, the scripted workers' part included",
    ).toBeLessThan(0.5);
  });
});

describe("a batch of which nothing was started", () => {
  it.each<[FaultCode, number | null, string | null]>([
    ["sandbox_unavailable", 40_001, "41"],
    ["sandbox_unavailable", 1_000, "5"],
    ["store_unavailable", 7_000, "7"],
    ["misconfigured", 7_000, null],
  ])(
    "is refused with %s for as long as E2B or the table asked for (%s ms)",
    async (code, retryAfterMs, header) => {
      const onAcquire = async () => {
        throw new Fault(code, "What happened.", { retryAfterMs });
      };
      const answer = await post(start({ onAcquire }), rightRequest());
      expect(answer.headers.get("retry-after")).toBe(header);
      const accept = { accept: "application/x-ndjson" };
      const text = await (await post(start({ onAcquire }), rightRequest(), accept)).text();
      const last = JSON.parse(text.trimEnd().split("\n").at(-1) ?? "");
      expect(last).toMatchObject({ type: "error", code });
      expect(last.retry_after_s).toBe(header === null ? undefined : Number(header));
    },
  );

  it.each<[FaultCode, number, string | null]>([
    ["no_capacity", 503, "5"],
    ["sandbox_unavailable", 503, "5"],
    ["store_unavailable", 503, "2"],
    ["isolation_failed", 503, "30"],
    ["misconfigured", 503, null],
    ["cancelled", 409, null],
  ])("is refused with %s", async (code, status, retryAfter) => {
    const options: TestAppOptions = {
      onAcquire: async () => {
        throw new Fault(code, "What happened.");
      },
    };
    const answer = await post(start(options), rightRequest());
    expect(answer.status).toBe(status);
    expect(answer.headers.get("retry-after")).toBe(retryAfter);
    expect(await readProblem(answer)).toMatchObject({ status, code, detail: "What happened.", errors: [] });

    const lines = await readLines(
      await post(start(options), rightRequest(), { accept: "application/x-ndjson" }),
    );
    expect(lines.at(-1)).toMatchObject({ type: "error", status, code, detail: "What happened." });
    expect(lines.at(-1)?.retry_after_s).toBe(retryAfter === null ? undefined : Number(retryAfter));
  });
});
