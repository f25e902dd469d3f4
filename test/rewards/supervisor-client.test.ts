import { describe, expect, it } from "vitest";
import { cancel, executeChunk, readHealth } from "../../functions/adapters/supervisor-client.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import type { WorkerEvent } from "../../functions/rewards/ports.ts";
import { limits } from "./echo-batches.ts";
import {
  answerJson,
  beat,
  chunk,
  ended,
  lines,
  run,
  serve,
  sockets,
  started,
  streamOf,
  summary,
} from "./supervisor-server.ts";
import { settle } from "./virtual-clock.ts";

describe("a chunk that is executed", () => {
  it("is sent once, with the lease's token, and its lines come back as events", async () => {
    const { connection, seen } = await serve(streamOf(lines(started, beat, ended, summary)));
    const { events, fault } = await run(connection);
    expect(fault).toBeNull();
    const outcome = {
      end: { kind: "exited", exitCode: 0 },
      stdout: "é\n",
      stderrTail: "",
      wallMs: 4.5,
      cpuMs: 3.25,
      peakRssKib: 9000,
    };
    expect(events).toEqual([
      { kind: "case_started", programId: "p0", caseIndex: 0 },
      { kind: "beat" },
      { kind: "case_ended", programId: "p0", caseIndex: 0, outcome },
      { kind: "summary", end: "completed" },
    ]);
    expect(seen).toMatchObject([{ method: "POST", path: "/v1/execute", authorization: "Bearer secret" }]);
    expect(JSON.parse(seen[0]?.body ?? "")).toEqual({
      fencing_token: 7,
      chunk_id: "chunk-1",
      deadline_ms: 1_234,
      programs: [
        {
          id: "p0",
          source: "print('é\n')",
          inputs: ["1", "\u0000"],
          limits: { time_ms: 2000, memory_mib: 192, output_bytes: 65_536 },
        },
      ],
    });
  });

  it.each([
    [
      { status: "signaled", signal: "SIGSEGV" },
      { kind: "signaled", signal: "SIGSEGV" },
    ],
    [{ status: "time_limit" }, { kind: "time_limit" }],
    [{ status: "memory_limit" }, { kind: "memory_limit" }],
    [{ status: "output_limit" }, { kind: "output_limit" }],
    [
      { status: "starved", detail: "why" },
      { kind: "starved", detail: "why" },
    ],
    [
      { status: "isolation_failed", detail: "why" },
      { kind: "isolation_failed", detail: "why" },
    ],
    [{ exit_code: 255 }, { kind: "exited", exitCode: 255 }],
  ])("may end its cases with %j", async (change, end) => {
    const { connection } = await serve(streamOf(lines(started, { ...ended, ...change }, summary)));
    const { events } = await run(connection);
    expect(events[1]).toMatchObject({ outcome: { end } });
  });

  it("may print what isn't UTF-8", async () => {
    const { stdout: _, ...frame } = ended;
    const { connection } = await serve(
      streamOf(lines(started, { ...frame, stdout_base64: "/w==" }, summary)),
    );
    expect((await run(connection)).events[1]).toMatchObject({ outcome: { stdout: null } });
  });

  it("is read rightly however its bytes are cut", async () => {
    const bytes = Buffer.from(
      lines(started, ended, { ...beat, type: "syntax_error", program: "p0", detail: "ü" }, summary),
    );
    const { connection } = await serve(async (res) => {
      res.writeHead(200);
      for (const byte of bytes) {
        res.write(Buffer.from([byte]));
        await settle();
      }
      res.end();
    });
    const { events, fault } = await run(connection);
    expect(fault).toBeNull();
    expect(events.map((event) => event.kind)).toEqual([
      "case_started",
      "case_ended",
      "syntax_error",
      "summary",
    ]);
    expect(events[2]).toMatchObject({ detail: "ü" });
  });

  it.each(["deadline", "cancelled", "superseded"])("may end early: %s", async (reason) => {
    const { connection } = await serve(streamOf(lines({ ...summary, reason })));
    expect((await run(connection)).events).toEqual([{ kind: "summary", end: reason }]);
  });

  it("is sent over the connection of the one before", async () => {
    const { connection } = await serve(streamOf(lines(summary)));
    for (let count = 0; count < 5; count += 1) expect((await run(connection)).fault).toBeNull();
    expect(sockets.size).toBe(1);
  });

  it("may be one of many megabytes", async () => {
    const { connection, seen } = await serve(
      streamOf(lines(started, { ...ended, stdout: "\u0001".repeat(1_048_576) }, summary)),
    );
    const inputs = ["x".repeat(4_000_000)];
    const events: WorkerEvent[] = [];
    const large = { ...chunk, programs: [{ id: "p0", source: "", inputs, limits }] };
    for await (const event of executeChunk(connection, large, new AbortController().signal, systemClock))
      events.push(event);
    expect(events).toHaveLength(3);
    expect(seen[0]?.body.length).toBeGreaterThan(4_000_000);
  });
});

describe("a worker's health", () => {
  const signal = new AbortController().signal;
  it("may be ready, starting or refused", async () => {
    const ready = {
      state: "ready",
      version: "1",
      instance: null,
      python: "3.11.7",
      mode: "root",
      slots: 2,
      fencing_token: 3,
      properties: {},
    };
    const { connection, seen } = await serve(answerJson(200, ready));
    expect(await readHealth(connection, signal)).toEqual({
      kind: "ready",
      version: "1",
      instance: null,
      slots: 2,
      fencingToken: 3,
    });
    expect(seen).toMatchObject([{ method: "GET", path: "/v1/health", authorization: "Bearer secret" }]);
    const starting = await serve(answerJson(503, { state: "starting" }));
    expect(await readHealth(starting.connection, signal)).toEqual({ kind: "starting" });
    const failed = [{ property: "no_network", detail: "why", remedy: "what to do" }];
    const refused = await serve(answerJson(503, { state: "refused", failed }));
    expect(await readHealth(refused.connection, signal)).toEqual({ kind: "refused", failed });
  });

  it.each([
    [200, { state: "ready" }, "supervisor_protocol"],
    [200, { state: "starting" }, "supervisor_protocol"],
    [401, { code: "unauthorized" }, "supervisor_protocol"],
    [502, {}, "worker_lost"],
  ])("of status %i %j is a fault: %s", async (status, body, code) => {
    const { connection } = await serve(answerJson(status, body));
    await expect(readHealth(connection, signal)).rejects.toMatchObject({ name: "Fault", code });
  });

  it("can't be had of a worker that is gone", async () => {
    const { connection } = await serve((res) => res.socket?.destroy());
    await expect(readHealth(connection, signal)).rejects.toMatchObject({ code: "worker_lost" });
  });
});

describe("cancelling", () => {
  it("raises the fence and tells how many programs ended", async () => {
    const { connection, seen } = await serve(answerJson(200, { fencing_token: 7, stopped: 3 }));
    expect(await cancel(connection, new AbortController().signal)).toBe(3);
    expect(seen).toMatchObject([{ method: "POST", path: "/v1/cancel", body: '{"fencing_token":7}' }]);
  });

  it.each([
    [200, { fencing_token: 7 }, "supervisor_protocol"],
    [200, { fencing_token: 6, stopped: 1 }, "supervisor_protocol"],
    [200, { stopped: 1 }, "supervisor_protocol"],
    [409, { code: "stale_token" }, "supervisor_protocol"],
    [502, {}, "worker_lost"],
  ])("may fail: status %i %j, %s", async (status, body, code) => {
    const { connection } = await serve(answerJson(status, body));
    await expect(cancel(connection, new AbortController().signal)).rejects.toMatchObject({ code });
  });
});
