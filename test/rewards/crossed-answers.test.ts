/** On the way, answers are mixed up: what a worker said to another request must not be believed. */
import { describe, expect, it } from "vitest";
import { cancel, executeChunk, readHealth } from "../../functions/adapters/supervisor-client.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import {
  answerJson,
  beat,
  chunk,
  ended,
  type Handler,
  lines,
  run,
  type Seen,
  serve,
  started,
  streamOf,
  summary,
} from "./supervisor-server.ts";

const never = new AbortController().signal;
const theirs = { chunk: "chunk-0" };
const syntaxError = { ...beat, type: "syntax_error", program: "p0", detail: "why" };
const invalidTask = { ...beat, type: "invalid_task", program: "p0", detail: "why" };

/** Whatever is asked, the answer is the one to the first request. */
function alwaysTheFirst(answer: (seen: Seen) => object): Handler {
  let first: string | undefined;
  return (res, seen) => {
    first ??= JSON.stringify({ ...answer(seen), nonce: seen.nonce });
    res.writeHead(200, { "content-type": "application/json" });
    res.end(first);
  };
}

describe("the answer to a chunk", () => {
  it("is not believed when it is another one's, whose programs have the same names", async () => {
    const answer = lines({ ...started, ...theirs }, { ...ended, ...theirs }, { ...summary, ...theirs });
    const { connection } = await serve(streamOf(answer));
    const own = executeChunk(connection, { ...chunk, chunkId: "chunk-0" }, never, systemClock);
    const kinds: string[] = [];
    for await (const { kind } of own) kinds.push(kind);
    expect(kinds).toEqual(["case_started", "case_ended", "summary"]);
    expect(await run(connection)).toMatchObject({
      events: [],
      fault: { code: "supervisor_protocol", retryable: true },
    });
  });

  it.each([
    ["a start", [{ ...started, ...theirs }, ended, summary], 0],
    ["an end", [started, { ...ended, ...theirs }, summary], 1],
    ["a syntax error", [{ ...syntaxError, ...theirs }, summary], 0],
    ["an invalid task", [{ ...invalidTask, ...theirs }, summary], 0],
    ["a beat", [started, { ...beat, ...theirs }, ended, summary], 1],
    ["a summary", [started, ended, { ...summary, ...theirs }], 2],
    ["a summary of no chunk", [started, ended, { ...summary, chunk: undefined }], 2],
    ["a summary of a chunk that is a number", [started, ended, { ...summary, chunk: 1 }], 2],
  ])("ends where %s of another one is in it", async (_, frames, believed) => {
    const { connection } = await serve(streamOf(lines(...frames)));
    const { events, fault } = await run(connection);
    expect(events).toHaveLength(believed);
    expect(fault).toMatchObject({ code: "supervisor_protocol" });
  });

  it.each([
    ["chunk_seen", 409, "worker_lost", "supervisor_protocol"],
    ["restarted", 409, "worker_lost", "supervisor_protocol"],
    ["not_ready", 503, "worker_lost", "worker_lost"],
  ])("is no refusal (%s) that another request was given", async (code, status, own, another) => {
    const refused = await serve(answerJson(status, { code }));
    const said = (await run(refused.connection)).fault;
    const crossed = await serve((res) => {
      res.writeHead(status, { "content-type": "application/json" });
      res.end(JSON.stringify({ code, nonce: "of another" }));
    });
    const unsaid = (await run(crossed.connection)).fault;
    expect(said).toMatchObject({ code: own });
    expect(unsaid).toMatchObject({ code: another });
    expect(unsaid?.message).not.toBe(said?.message);
  });
});

describe("a worker's health", () => {
  it("is not that of another worker, or of an earlier time", async () => {
    const ready = { state: "ready", version: "1", instance: "i", slots: 2, fencing_token: 3 };
    const { connection } = await serve(alwaysTheFirst(() => ready));
    expect(await readHealth(connection, never)).toMatchObject({ kind: "ready" });
    await expect(readHealth(connection, never)).rejects.toMatchObject({ code: "supervisor_protocol" });
  });

  it.each([
    ["refused", { state: "refused", failed: [] }],
    ["starting", { state: "starting" }],
  ])("is not %s because another one is", async (_, state) => {
    const { connection } = await serve((res) => {
      res.writeHead(503, { "content-type": "application/json" });
      res.end(JSON.stringify({ ...state, nonce: "of another" }));
    });
    await expect(readHealth(connection, never)).rejects.toMatchObject({ code: "worker_lost" });
  });
});

describe("a worker that was told to stop", () => {
  it("has not said so when another one has, whose token is the same", async () => {
    const { connection } = await serve(
      alwaysTheFirst(({ body }) => ({ fencing_token: JSON.parse(body).fencing_token, stopped: 1 })),
    );
    expect(await cancel(connection, never)).toBe(1);
    await expect(cancel(connection, never)).rejects.toMatchObject({ code: "supervisor_protocol" });
  });
});
