import type http from "node:http";
import net, { type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { cancel, executeChunk } from "../../functions/adapters/supervisor-client.ts";
import { largestLineBytes } from "../../functions/adapters/supervisor-frames.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { WorkerEvent } from "../../functions/rewards/ports.ts";
import {
  answerJson,
  beat,
  chunk,
  ended,
  type Handler,
  lines,
  listen,
  run,
  serve,
  servers,
  sockets,
  started,
  streamOf,
  summary,
} from "./supervisor-server.ts";
import { createVirtualClock } from "./virtual-clock.ts";

describe("a worker that breaks the protocol", () => {
  const without = (name: string) => Object.fromEntries(Object.entries(ended).filter(([key]) => key !== name));

  it.each<[string, string | Buffer]>([
    ["an empty answer", ""],
    ["no summary", lines(started, ended)],
    ["a last line that is cut off", `${lines(started, ended)}{"chunk":"chunk-1","type":"summ`],
    ["a line after the summary", lines(summary, started)],
    ["two summaries", lines(summary, summary)],
    ["an empty line", `\n${lines(summary)}`],
    ["a line that is not JSON", `oops\n${lines(summary)}`],
    ["a line that is a list", lines([], summary)],
    ["a line that is null", lines(null, summary)],
    ["a line of unknown type", lines({ ...beat, type: "hello" }, summary)],
    ["a line without a type", lines({ chunk: chunk.chunkId }, summary)],
    [
      "a line that is not UTF-8",
      Buffer.from(lines(started, { ...ended, stdout: "\u00ff" }, summary), "latin1"),
    ],
    ["no program", lines({ ...beat, type: "started", case: 0 }, summary)],
    ["a program that is a number", lines({ ...started, program: 1 }, summary)],
    ["no case", lines({ ...beat, type: "started", program: "p0" }, summary)],
    ["a negative case", lines({ ...started, case: -1 }, summary)],
    ["half a case", lines({ ...started, case: 0.5 }, summary)],
    ["an unknown status", lines(started, { ...ended, status: "fine" }, summary)],
    ["no status", lines(started, without("status"), summary)],
    ["no exit code", lines(started, without("exit_code"), summary)],
    ["a negative exit code", lines(started, { ...ended, exit_code: -9 }, summary)],
    ["no signal", lines(started, { ...ended, status: "signaled" }, summary)],
    ["no detail", lines(started, { ...ended, status: "starved" }, summary)],
    ["no output", lines(started, without("stdout"), summary)],
    ["an output that is null", lines(started, { ...ended, stdout: null }, summary)],
    ["no tail of standard error", lines(started, without("stderr_tail"), summary)],
    ["no wall time", lines(started, without("wall_ms"), summary)],
    ["a negative CPU time", lines(started, { ...ended, cpu_ms: -1 }, summary)],
    ["a memory that is a text", lines(started, { ...ended, peak_rss_kib: "9000" }, summary)],
    ["a syntax error without a detail", lines({ ...beat, type: "syntax_error", program: "p0" }, summary)],
    ["an unknown reason", lines({ ...summary, reason: "done" })],
    ["a reason that is the client's own", lines({ ...summary, reason: "too_large" })],
  ])("with %s", async (_, text) => {
    const { connection } = await serve(streamOf(text));
    const { fault } = await run(connection);
    expect(fault).toMatchObject({ name: "Fault", code: "supervisor_protocol", retryable: true });
  });

  it("with a line that never ends", async () => {
    const { connection } = await serve((res) => {
      res.writeHead(200);
      res.write(Buffer.alloc(largestLineBytes + 1024, 0x78));
    });
    expect((await run(connection)).fault).toMatchObject({ code: "supervisor_protocol" });
  });

  it.each([
    [401, "unauthorized", "supervisor_protocol"],
    [400, "invalid_request", "supervisor_protocol"],
    [409, "stale_token", "supervisor_protocol"],
    [409, "chunk_seen", "worker_lost"],
    [409, "restarted", "worker_lost"],
    [503, "not_ready", "worker_lost"],
    [418, "teapot", "supervisor_protocol"],
    [204, undefined, "supervisor_protocol"],
    [302, undefined, "supervisor_protocol"],
    [403, undefined, "supervisor_protocol"],
    [404, undefined, "worker_lost"],
    [429, undefined, "worker_lost"],
    [503, undefined, "worker_lost"],
    [500, undefined, "worker_lost"],
    [502, undefined, "worker_lost"],
    [504, undefined, "worker_lost"],
  ])("with status %i %s: %s", async (status, code, fault) => {
    const ofSomebodyElse: Handler = (res) => {
      res.writeHead(status, { "content-type": "application/json" });
      res.end(status === 204 ? undefined : "<html>bad gateway</html>");
    };
    const { connection, seen } = await serve(
      code === undefined ? ofSomebodyElse : answerJson(status, { code, detail: "why" }),
    );
    expect((await run(connection)).fault).toMatchObject({ code: fault });
    expect(seen).toHaveLength(code === "chunk_seen" ? 3 : 1);
  });

  it("is not one that takes no request of this size", async () => {
    const { connection, seen } = await serve(answerJson(413, { code: "too_large", detail: "why" }));
    expect(await run(connection)).toEqual({ events: [{ kind: "summary", end: "too_large" }], fault: null });
    expect(seen).toHaveLength(1);
  });

  it("is not one that a proxy lets no request of this size through to; that is asked twice", async () => {
    const { connection, seen } = await serve((res) => void res.writeHead(413).end("<html>too large</html>"));
    expect(await run(connection)).toEqual({ events: [{ kind: "summary", end: "kept_off" }], fault: null });
    expect(seen).toHaveLength(2);
  });

  it("with a refusal that never ends", async () => {
    const { connection } = await serve((res) => {
      res.writeHead(500);
      res.end(Buffer.alloc(1_000_000, 0x78));
    });
    expect((await run(connection)).fault).toMatchObject({ code: "supervisor_protocol" });
  });

  it("with what isn't HTTP", async () => {
    const connection = await listen(net.createServer((socket) => socket.end("SSH-2.0-OpenSSH_9.2\r\n")));
    expect((await run(connection)).fault).toMatchObject({ code: "supervisor_protocol" });
  });
});

describe("an answer that no supervisor gives", () => {
  it.each([429, 500, 502, 503, 504])(
    "(status %i) is sent again, with what is left of the time, as long as the caller decides so",
    async (status) => {
      const clock = createVirtualClock();
      const { connection, seen } = await serve((res, _, count) => {
        if (count > 2) return res.end(lines(started, ended, summary));
        res.writeHead(status, { "retry-after": "3" });
        res.end(JSON.stringify({ code: status, message: "no" }));
      });
      const told: unknown[] = [];
      const events = executeChunk(
        connection,
        chunk,
        new AbortController().signal,
        clock,
        async (trouble, tries) => {
          told.push([tries, trouble]);
          await clock.advance(300);
          return null;
        },
      );
      const kinds: string[] = [];
      for await (const { kind } of events) kinds.push(kind);
      expect(kinds).toEqual(["case_started", "case_ended", "summary"]);
      const trouble = {
        kind: "answered",
        why: expect.stringContaining(String(status)),
        isRefusal: status === 429 || status === 503,
        retryAfterMs: 3_000,
      };
      expect(told).toEqual([
        [1, trouble],
        [2, trouble],
      ]);
      const sent = seen.map(({ body }) => JSON.parse(body));
      expect(sent.map((body) => body.chunk_id)).toEqual(["chunk-1", "chunk-1", "chunk-1"]);
      expect(sent.map((body) => body.deadline_ms)).toEqual([1_234, 934, 634]);
    },
  );

  it("ends the chunk with the fault that the caller decides on", async () => {
    const { connection } = await serve((res) => void res.writeHead(502).end());
    const fault = new Fault("sandbox_unavailable", "why");
    const events = executeChunk(
      connection,
      chunk,
      new AbortController().signal,
      systemClock,
      async () => fault,
    );
    await expect(events.next()).rejects.toBe(fault);
  });

  it("is none of the worker's silence while the caller decides, and no reason to go on when it gives up", async () => {
    const clock = createVirtualClock();
    const stop = new AbortController();
    const { connection, seen } = await serve((res) => void res.writeHead(502).end());
    const events = executeChunk(connection, chunk, stop.signal, clock, async (_, tries) => {
      await clock.advance(60_000);
      if (tries === 2) stop.abort();
      return null;
    });
    await expect(events.next()).rejects.toMatchObject({ code: "cancelled" });
    expect(seen).toHaveLength(2);
  });
});

describe("a connection that breaks", () => {
  it.each<[string, (socket: Socket) => void]>([
    ["is reset", (socket) => socket.resetAndDestroy()],
    ["is closed", (socket) => socket.destroy()],
  ])("before the first byte (it %s): the same chunk is sent once more, and no more", async (_, cut) => {
    const { connection, seen } = await serve((res, __, count) => {
      if (count === 1) cut(res.socket as Socket);
      else res.end(lines(started, ended, summary));
    });
    const { events, fault } = await run(connection);
    expect(fault).toBeNull();
    expect(events).toHaveLength(3);
    expect(seen).toHaveLength(2);
    expect(seen[1]).toEqual(seen[0]);

    const broken = await serve((res) => cut(res.socket as Socket));
    expect((await run(broken.connection)).fault).toMatchObject({ code: "worker_lost", retryable: true });
    expect(broken.seen).toHaveLength(2);
  });

  it("before the first byte, as all that were open before: the second attempt is over a new one", async () => {
    const used = new WeakSet<Socket>();
    const waiting: http.ServerResponse[] = [];
    const { connection, seen } = await serve((res) => {
      const socket = res.socket as Socket;
      if (used.has(socket)) return socket.resetAndDestroy();
      used.add(socket);
      waiting.push(res);
      if (seen.length < 2) return;
      for (const answer of waiting.splice(0)) answer.end(lines(summary));
    });
    await Promise.all([run(connection), run(connection)]);
    expect(sockets.size).toBe(2);
    expect((await run(connection)).fault).toBeNull();
    expect(seen).toHaveLength(4);
  });

  it("before the first byte, of a chunk that was seen: it is run again under another id, and not for ever", async () => {
    const isSeen = (id: string, known: readonly string[]) => known.filter((other) => other === id).length > 1;
    const { connection, seen } = await serve((res, request, count) => {
      if (count === 1) return res.socket?.resetAndDestroy();
      const ids = seen.map(({ body }) => JSON.parse(body).chunk_id);
      const id = JSON.parse(request.body).chunk_id;
      if (isSeen(id, ids))
        return answerJson(409, { code: "chunk_seen", detail: "seen" })(res, request, count);
      res.end(lines({ ...started, chunk: id }, { ...ended, chunk: id }, { ...summary, chunk: id }));
    });
    expect(await run(connection)).toMatchObject({ fault: null, events: { length: 3 } });
    const ids = seen.map(({ body }) => JSON.parse(body).chunk_id);
    expect(ids).toEqual(["chunk-1", "chunk-1", "chunk-1.1"]);
  });

  it("while it was idle costs nothing", async () => {
    const { connection, seen } = await serve((res, _, count) => {
      res.end(lines(summary));
      if (count === 1) res.on("close", () => setImmediate(() => res.socket?.destroy()));
    });
    expect((await run(connection)).fault).toBeNull();
    expect((await run(connection)).fault).toBeNull();
    expect(seen).toHaveLength(2);
  });

  it("in the middle of an answer: the worker is lost, and what it told until then is kept", async () => {
    const { connection, seen } = await serve((res) => {
      res.writeHead(200);
      res.write(lines(started, ended), () => res.socket?.resetAndDestroy());
    });
    const { events, fault } = await run(connection);
    expect(events.map((event) => event.kind)).toEqual(["case_started", "case_ended"]);
    expect(fault).toMatchObject({ code: "worker_lost" });
    expect(seen).toHaveLength(1);
  });

  it("after the headers and before any line: the worker is lost", async () => {
    const { connection, seen } = await serve((res) => {
      res.writeHead(200);
      res.flushHeaders();
      setImmediate(() => res.socket?.destroy());
    });
    expect((await run(connection)).fault).toMatchObject({ code: "worker_lost" });
    expect(seen).toHaveLength(1);
  });

  it("or was never there: the worker is lost", async () => {
    const { connection } = await serve(() => {});
    await new Promise((resolve) => servers.splice(0)[0]?.close(resolve));
    expect((await run(connection)).fault).toMatchObject({ code: "worker_lost" });
  });
});

describe("silence", () => {
  it.each<[string, Handler, number]>([
    ["before the answer", () => {}, 0],
    [
      "in its middle",
      (res) => {
        res.writeHead(200);
        res.write(lines(started));
      },
      1,
    ],
  ])("of 15 s %s: the worker is lost", async (_, handler, told) => {
    const clock = createVirtualClock();
    const { connection, seen } = await serve(handler);
    const running = run(connection, clock);
    const events: unknown[] = [];
    void running.then((done) => events.push(...done.events));
    await expect.poll(() => seen.length).toBe(1);
    await expect.poll(() => sockets.size).toBe(1);
    await clock.advance(14_999);
    expect(sockets.size).toBe(1);
    await clock.advance(15_001);
    const { events: heard, fault } = await running;
    expect(heard).toHaveLength(told);
    expect(fault).toMatchObject({ code: "worker_lost" });
    expect(fault?.message).toContain("15 s");
    expect(seen).toHaveLength(1);
  });

  it("that beats break is none", async () => {
    const clock = createVirtualClock();
    let answer: http.ServerResponse | undefined;
    const { connection } = await serve((res) => {
      res.writeHead(200);
      res.write(lines(started));
      answer = res;
    });
    const events: WorkerEvent[] = [];
    const running = (async () => {
      for await (const event of executeChunk(connection, chunk, new AbortController().signal, clock))
        events.push(event);
    })();
    await expect.poll(() => events.length).toBe(1);
    for (let count = 0; count < 8; count += 1) {
      await clock.advance(10_000);
      answer?.write(lines(beat));
      await expect.poll(() => events.length).toBe(count + 2);
    }
    answer?.end(lines(ended, summary));
    await running;
    expect(events).toHaveLength(11);
    expect(clock.sleepers()).toBe(0);
  });

  it("is not the worker's while this process itself is stopped", async () => {
    const clock = createVirtualClock();
    let answer: http.ServerResponse | undefined;
    const { connection } = await serve((res) => {
      res.writeHead(200);
      res.write(lines(started));
      answer = res;
    });
    const running = run(connection, clock);
    await expect.poll(() => answer).toBeDefined();
    await waitForTraffic();
    await clock.freeze(90_000);
    answer?.end(lines(ended, summary));
    expect((await running).fault).toBeNull();
  });

  it("is the worker's again once this process goes on", async () => {
    const clock = createVirtualClock();
    const { connection } = await serve((res) => void res.writeHead(200).write(lines(started)));
    const running = run(connection, clock);
    await expect.poll(() => sockets.size).toBe(1);
    await waitForTraffic();
    await clock.freeze(90_000);
    await clock.advance(15_001);
    expect((await running).fault).toMatchObject({ code: "worker_lost" });
  });

  it("is none while a long line is still coming", async () => {
    const clock = createVirtualClock();
    let answer: http.ServerResponse | undefined;
    const { connection } = await serve((res) => {
      res.writeHead(200);
      res.write(lines(started));
      answer = res;
    });
    const running = run(connection, clock);
    await expect.poll(() => answer).toBeDefined();
    const text = lines(ended, summary);
    for (const piece of [text.slice(0, 10), text.slice(10, 20), text.slice(20, 30)]) {
      await clock.advance(10_000);
      answer?.write(piece);
      await waitForTraffic();
    }
    answer?.end(text.slice(30));
    expect((await running).fault).toBeNull();
  });

  it("is not the worker's while the caller is busy with a line", async () => {
    const clock = createVirtualClock();
    let answer: http.ServerResponse | undefined;
    const { connection } = await serve((res) => {
      res.writeHead(200);
      res.write(lines(started));
      answer = res;
    });
    const kinds: string[] = [];
    for await (const event of executeChunk(connection, chunk, new AbortController().signal, clock)) {
      kinds.push(event.kind);
      await clock.advance(60_000);
      if (kinds.length === 1) answer?.end(lines(ended, summary));
    }
    expect(kinds).toEqual(["case_started", "case_ended", "summary"]);
  });
});

/** Sends bytes to and fro on a connection of its own, so that what was written before has arrived by then. */
async function waitForTraffic(): Promise<void> {
  const { connection } = await serve(answerJson(200, { fencing_token: 7, stopped: 0 }));
  for (let count = 0; count < 3; count += 1) await cancel(connection, new AbortController().signal);
}

describe("a caller that gives up", () => {
  it("closes the connection, in the middle and before the answer", async () => {
    for (const begins of [true, false]) {
      const stop = new AbortController();
      const { connection, seen } = await serve((res) => {
        if (!begins) return;
        res.writeHead(200);
        res.write(lines(started));
      });
      const running = run(connection, systemClock, stop.signal);
      await expect.poll(() => seen.length).toBe(1);
      stop.abort();
      expect((await running).fault).toMatchObject({ code: "cancelled" });
      await expect.poll(() => sockets.size).toBe(0);
      expect(seen).toHaveLength(1);
    }
  });

  it("before it began sends nothing", async () => {
    const { connection, seen } = await serve(streamOf(lines(summary)));
    expect((await run(connection, systemClock, AbortSignal.abort())).fault).toMatchObject({
      code: "cancelled",
    });
    expect(seen).toHaveLength(0);
  });

  it("by leaving the loop closes the connection too", async () => {
    const { connection } = await serve((res) => {
      res.writeHead(200);
      res.write(lines(started));
    });
    for await (const _ of executeChunk(connection, chunk, new AbortController().signal, systemClock)) break;
    await expect.poll(() => sockets.size).toBe(0);
  });
});
