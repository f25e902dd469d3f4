/** Connections between two requests: used again soon, and never after they may have been forgotten. */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { keepConnections, keptForMs } from "../../functions/adapters/kept-connections.ts";

const sockets = new Set<Socket>();
const server = http
  .createServer((_, response) => response.end("hello"))
  .on("connection", (socket) => {
    sockets.add(socket);
  });
let nowMs = 1_800_000_000_000;
let agent: http.Agent;

beforeAll(async () => {
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
beforeEach(() => {
  sockets.clear();
  agent = keepConnections({}, () => nowMs).http;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

async function ask(): Promise<void> {
  const { port } = server.address() as AddressInfo;
  const request = http.get({ port, agent });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  response.resume();
  await once(response, "end");
  await new Promise(setImmediate); // the agent gets the connection back
}

it.each([
  { what: "soon", laterMs: keptForMs - 1, connections: 1 },
  { what: "after a pause, or when the process was frozen", laterMs: keptForMs + 1, connections: 2 },
  { what: "after hours", laterMs: 7_200_000, connections: 2 },
  { what: "when the clock was set back", laterMs: -3_600_000, connections: 2 },
])("$what, the next request makes $connections of one", async ({ laterMs, connections }) => {
  await ask();
  nowMs += laterMs;
  await ask();
  expect(sockets.size).toBe(connections);
});

it("of several that were idle, each only as long as it may be", async () => {
  await Promise.all([ask(), ask(), ask()]);
  nowMs += keptForMs - 500;
  await ask(); // on one of the three
  expect(sockets.size).toBe(3);
  nowMs += 1_000;
  await ask(); // on the same
  expect(sockets.size).toBe(3);
  await Promise.all([ask(), ask()]); // the two others are too old
  expect(sockets.size).toBe(4);
});

it("ends without a word when its request is given up at the last of the answer", async () => {
  const { port } = server.address() as AddressInfo;
  const giveUp = new AbortController();
  const request = http.get({ port, agent, signal: giveUp.signal });
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const closed = new Promise<void>((resolve) => void request.once("close", resolve));
  response.on("data", () => giveUp.abort());
  await closed;
  await new Promise(setImmediate); // an error that nobody hears fails this run, as it would end the process
});
