/** The end of the server on loopback: whoever was taken is answered, nobody else is taken. */
import { once } from "node:events";
import { connect } from "node:net";
import { Hono } from "hono";
import { stream } from "hono/streaming";
import { describe, expect, it } from "vitest";
import { listenOnLoopback } from "../../functions/local/http-server.ts";
import { serveOnLoopback } from "./loopback.ts";

function barrier() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

/** Whether a new connection is. */
function isRefused(url: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      resolve(false);
    });
    socket.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "ECONNREFUSED" ? resolve(true) : reject(error),
    );
  });
}

it("tells those who come before it serves that it is starting, and when to come again", async () => {
  const server = await listenOnLoopback(0);
  const early = await fetch(server.url);
  expect({ status: early.status, retry: early.headers.get("retry-after") }).toEqual({
    status: 503,
    retry: "5",
  });
  expect(await early.json()).toMatchObject({
    code: "no_capacity",
    detail: expect.stringContaining("starting"),
  });
  expect((await fetch(`${server.url}/healthz`)).status, "it lives").toBe(200);
  server.serve(new Hono().get("/", (c) => c.text("here")));
  expect(await (await fetch(server.url)).text()).toBe("here");
  await server.close();
});

it("rejects a port that is taken", async () => {
  const server = await listenOnLoopback(0);
  await expect(listenOnLoopback(Number(new URL(server.url).port))).rejects.toMatchObject({
    code: "EADDRINUSE",
  });
  await server.close();
});

it("answers what it took before it closes, and says that the connection ends", async () => {
  const [arrived, released] = [barrier(), barrier()];
  const app = new Hono().get("/", async (c) => {
    arrived.open();
    await released.opened;
    return c.text("late");
  });
  const server = await serveOnLoopback(app);
  const answer = fetch(server.url);
  await arrived.opened;
  const closed = server.close();
  released.open();
  expect(await (await answer).text()).toBe("late");
  expect((await answer).headers.get("connection")).toBe("close");
  await closed;
});

it("lets an answer that is read slowly arrive", async () => {
  const chunk = new Uint8Array(4 << 20).fill(97);
  const app = new Hono().get("/", (c) => c.body(chunk));
  const server = await serveOnLoopback(app);
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  let bytes = 0;
  const ended = new Promise<void>((resolve) => {
    socket.once("end", resolve);
    socket.once("error", () => resolve());
  });
  const [first] = (await once(socket, "data")) as [Buffer];
  bytes += first.length;
  socket.pause();
  // Its answer is made, and most of it is still to be read.
  const closed = server.close();
  expect(await isRefused(server.url)).toBe(true);
  socket.on("data", (more: Buffer) => {
    bytes += more.length;
  });
  socket.resume();
  await ended;
  await closed;
  expect(bytes).toBeGreaterThan(chunk.length);
});

it("waits for a request whose caller has gone: it may be making what is to be ended", async () => {
  const [arrived, released] = [barrier(), barrier()];
  let isHandled = false;
  const app = new Hono().get("/", async (c) => {
    arrived.open();
    await released.opened;
    isHandled = true;
    return c.text("to nobody");
  });
  const server = await serveOnLoopback(app);
  const gone = new AbortController();
  const answer = fetch(server.url, { signal: gone.signal }).catch(() => null);
  await arrived.opened;
  gone.abort();
  await answer;
  const closed = server.close().then(() => isHandled);
  // Each is a turn through the network: one that waited for its connections alone would have closed by now.
  for (let turn = 0; turn < 10; turn += 1) expect(await isRefused(server.url)).toBe(true);
  released.open();
  expect(await closed).toBe(true);
});

describe("what comes over an open connection while others are answered", () => {
  it.each([
    { answer: "has not begun", path: "/slow", says: "slow", refusal: null },
    { answer: "has begun", path: "/stream", says: "last", refusal: 503 },
  ])("is not done, after an answer that $answer", async ({ path, says, refusal }) => {
    const [arrived, released] = [barrier(), barrier()];
    const app = new Hono()
      .get("/", (c) => c.text("taken"))
      .get("/slow", async (c) => {
        arrived.open();
        await released.opened;
        return c.text("slow");
      })
      .get("/stream", (c) =>
        stream(c, async (body) => {
          await body.write("first\n");
          arrived.open();
          await released.opened;
          await body.write("last\n");
        }),
      );
    const server = await serveOnLoopback(app);
    // Two requests on one connection, the second sent while the first is answered.
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    let text = "";
    const ended = new Promise((resolve) => socket.once("close", resolve));
    socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await arrived.opened;
    if (refusal !== null) text += (await once(socket, "data"))[0];
    socket.on("data", (data: Buffer) => {
      text += data;
    });
    server.refuse();
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    expect(await isRefused(server.url)).toBe(true);
    released.open();
    await server.close();
    await ended;
    expect(text).toContain(says);
    expect(text).not.toContain("taken");
    const answers = text.split(/(?=HTTP\/1\.1 )/);
    expect(answers).toHaveLength(refusal === null ? 1 : 2);
    if (refusal === null) return;
    expect(answers[1]).toMatch(
      new RegExp(`^HTTP/1.1 ${refusal} [^]*retry-after: 2[^]*"code":"stopping"`, "i"),
    );
  });
});
