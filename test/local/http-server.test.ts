/** The end of the server on loopback: whoever was taken is answered, nobody else is taken. */
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { Hono } from "hono";
import { expect, it } from "vitest";
import { listenOnLoopback, serveOnLoopback } from "../../functions/local/http-server.ts";

function barrier() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

it("tells those who come before it serves that it is starting, and when to come again", async () => {
  const server = await listenOnLoopback(0);
  const early = await fetch(server.url);
  expect({ status: early.status, retry: early.headers.get("retry-after") }).toEqual({
    status: 503,
    retry: "5",
  });
  expect(await early.json()).toMatchObject({ detail: expect.stringContaining("starting") });
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
  const server = await serveOnLoopback(app, 0);
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
  const server = await serveOnLoopback(app, 0);
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  let bytes = 0;
  const ended = new Promise<void>((resolve) => {
    socket.once("end", resolve);
    socket.once("error", () => resolve());
  });
  socket.once("data", (first: Buffer) => {
    bytes += first.length;
    socket.pause();
    void server.close();
    // Its answer is made, and most of it is still to be read.
    setTimeout(() => socket.on("data", (more: Buffer) => (bytes += more.length)).resume(), 1_500);
  });
  await ended;
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
  const server = await serveOnLoopback(app, 0);
  const gone = new AbortController();
  const answer = fetch(server.url, { signal: gone.signal }).catch(() => null);
  await arrived.opened;
  gone.abort();
  await answer;
  const closed = server.close().then(() => isHandled);
  setTimeout(released.open, 50);
  expect(await closed).toBe(true);
});

it("refuses what comes over an open connection while others are answered", async () => {
  const [arrived, released] = [barrier(), barrier()];
  const app = new Hono()
    .get("/", (c) => c.text("taken"))
    .get("/slow", async (c) => {
      arrived.open();
      await released.opened;
      return c.text("slow");
    });
  const server = await serveOnLoopback(app, 0);
  // Two requests on one connection, the second sent while the first is answered.
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  let text = "";
  socket.on("data", (data: Buffer) => {
    text += data;
  });
  const ended = new Promise((resolve) => socket.once("close", resolve));
  socket.write("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
  await arrived.opened;
  server.refuse();
  socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  released.open();
  await server.close();
  await ended;
  expect(text).toContain("slow");
  expect(text).not.toContain("taken");
  const agent = new Agent();
  const refused = new Promise((resolve) => request(server.url, { agent }).once("error", resolve).end());
  expect(await refused).toMatchObject({ code: "ECONNREFUSED" });
});
