/** A small real HTTP server in the supervisor's place, for tests of its client. */
import { once } from "node:events";
import http from "node:http";
import type net from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { afterEach } from "vitest";
import { executeChunk, type FencedConnection } from "../../functions/adapters/supervisor-client.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import type { Chunk, Clock, WorkerEvent } from "../../functions/rewards/ports.ts";
import { limits } from "./echo-batches.ts";

export const chunk: Chunk = {
  chunkId: "chunk-1",
  deadlineMs: 1_234.5,
  programs: [{ id: "p0", source: "print('é\n')", inputs: ["1", "\u0000"], limits }],
};

/** What every line of the chunk's answer says. */
const ours = { chunk: chunk.chunkId };
export const started = { ...ours, type: "started", program: "p0", case: 0 };
export const beat = { ...ours, type: "beat" };
export const ended = {
  ...ours,
  type: "ended",
  program: "p0",
  case: 0,
  status: "exited",
  exit_code: 0,
  stdout: "é\n",
  stderr_tail: "",
  wall_ms: 4.5,
  cpu_ms: 3.25,
  peak_rss_kib: 9000,
};
export const summary = { ...ours, type: "summary", reason: "completed", cases: 1 };
export const lines = (...frames: unknown[]) => frames.map((frame) => `${JSON.stringify(frame)}\n`).join("");

export const servers: net.Server[] = [];
export const sockets = new Set<Socket>();

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await Promise.all(servers.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

export async function listen(server: net.Server): Promise<FencedConnection> {
  servers.push(server);
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    headers: { authorization: "Bearer secret" },
    fencingToken: 7,
  };
}

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly nonce: string | undefined;
  readonly body: string;
}

export type Handler = (res: http.ServerResponse, seen: Seen, count: number) => unknown;

export async function serve(handler: Handler): Promise<{ connection: FencedConnection; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = http.createServer(async (req, res) => {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece as Buffer);
    const { method = "", url = "", headers } = req;
    const request = {
      method,
      path: url,
      authorization: headers.authorization,
      nonce: headers["x-request-nonce"]?.toString(),
      body: Buffer.concat(pieces).toString(),
    };
    seen.push(request);
    await handler(res, request, seen.length);
  });
  return { connection: await listen(server), seen };
}

export async function run(
  connection: FencedConnection,
  clock: Clock = systemClock,
  signal = new AbortController().signal,
) {
  const events: WorkerEvent[] = [];
  try {
    for await (const event of executeChunk(connection, chunk, signal, clock)) events.push(event);
    return { events, fault: null };
  } catch (error) {
    return { events, fault: error as { name: string; code: string; message: string; retryable: boolean } };
  }
}

/** Answers as a supervisor does that is no stream. */
export function answerJson(status: number, body: object): Handler {
  return (res, { nonce }) => {
    res.writeHead(status, { "content-type": "application/json" });
    res.end(JSON.stringify({ ...body, nonce }));
  };
}

export function streamOf(text: string | Buffer): Handler {
  return (res) => {
    res.writeHead(200, { "content-type": "application/x-ndjson" });
    res.end(text);
  };
}
