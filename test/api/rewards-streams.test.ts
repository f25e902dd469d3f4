import { describe, expect, it } from "vitest";
import { obey } from "../rewards/scripted-workers.ts";
import { settle } from "../rewards/virtual-clock.ts";
import { readLines, requestFor, start, twoOfThree } from "./echo-app.ts";
import { post, rightRequest } from "./test-app.ts";

describe("a stream", () => {
  const stream = { accept: "application/x-ndjson" };

  it("has a line per sample as it ends, and the whole in its last line", async () => {
    const testApp = start(twoOfThree);
    const answer = await post(testApp, requestFor(["starved", "right", "third"]), stream);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("application/x-ndjson");
    const lines = await readLines(answer);
    const results = lines.filter((line) => line.type === "result");
    expect(results.map((line) => line.index)).toEqual([1, 2, 0]);
    expect(results[0]).toMatchObject({
      reward: 1,
      status: "graded",
      passed: 3,
      total: 3,
      verdicts: { length: 3 },
    });
    expect(results[2]).toMatchObject({ reward: null, status: "fault", fault: { code: "starved" } });
    expect(lines.at(-1)).toMatchObject({
      type: "summary",
      rewards: [null, 1, 1 / 3],
      request_id: expect.any(String),
    });
    expect(lines.at(-1)?.request_id).toBe(answer.headers.get("x-request-id"));
    expect(lines.filter((line) => line.type === "summary" || line.type === "error")).toHaveLength(1);
  });

  it("has short lines when only rewards are wanted", async () => {
    const answer = await post(
      start(twoOfThree),
      requestFor(["right", "starved"], { detail: "rewards" }),
      stream,
    );
    const results = (await readLines(answer)).filter((line) => line.type === "result");
    expect(results).toEqual([
      { type: "result", index: 0, reward: 1 },
      {
        type: "result",
        index: 1,
        reward: null,
        fault: { code: "starved", detail: expect.any(String), retryable: true },
      },
    ]);
  });

  it("is written while the batch runs", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const testApp = start({
      script: async (turn) => {
        if (turn.job.source.startsWith("later")) await gate;
        return obey(turn);
      },
    });
    const answer = await post(testApp, requestFor(["right", "later"]), stream);
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    while (!text.includes('"result"')) text += new TextDecoder().decode((await reader.read()).value);
    expect(text).toContain('"index":0');
    expect(text).not.toContain("summary");
    await testApp.clock.advance(5_000);
    text = new TextDecoder().decode((await reader.read()).value);
    expect(JSON.parse(text)).toEqual({ type: "progress", done: 1, total: 2 });
    open();
    while (!text.includes('"summary"')) text += new TextDecoder().decode((await reader.read()).value);
    expect((await reader.read()).done).toBe(true);
  });

  it("that nobody reads any more stops the batch", async () => {
    const testApp = start({ script: () => ({ kind: "hang" }) });
    const answer = await post(testApp, requestFor(["right"]), stream);
    await settle();
    expect(testApp.workers.leases[0]?.executing).toBe(1);
    await answer.body?.cancel();
    await settle();
    expect(testApp.workers.leases[0]).toMatchObject({ executing: 0, aborted: true, released: ["healthy"] });
    expect(testApp.logged).toEqual([]);
  });

  it("ends with an error line when something breaks in its middle, and tells no secret", async () => {
    const testApp = start({
      script: (turn) =>
        turn.job.source.startsWith("bug")
          ? { kind: "throw", error: new TypeError("password is hunter2") }
          : obey(turn),
    });
    const answer = await post(testApp, requestFor(["right", "bug"]), stream);
    const lines = await readLines(answer);
    expect(lines.at(-1)).toMatchObject({ type: "error", code: "internal", status: 500, errors: [] });
    expect(JSON.stringify(lines)).not.toContain("hunter2");
    expect(testApp.logged).toMatchObject([
      { level: "error", code: "internal", requestId: answer.headers.get("x-request-id") },
    ]);
  });

  it("is not begun for a request that is refused", async () => {
    const answer = await post(start(), { samples: [] }, stream);
    expect(answer.status).toBe(422);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
  });

  it.each([
    ["application/x-ndjson", true],
    ["Application/X-NDJSON; q=0.5", true],
    ["application/x-ndjson, application/json;q=0.5", true],
    ["application/x-ndjson, application/json", true],
    ["application/x-ndjson, application/problem+json", true],
    ["application/json, application/x-ndjson", false],
    ["application/json, application/x-ndjson;q=0.9", false],
    ["application/x-ndjson;q=0", false],
    ["*/*", false],
    ["text/html", false],
  ])("for 'Accept: %s': %s", async (accept, streams) => {
    const answer = await post(start(), rightRequest(), { accept });
    await answer.text();
    expect(answer.headers.get("content-type")).toBe(streams ? "application/x-ndjson" : "application/json");
  });
});
