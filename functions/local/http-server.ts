import { once } from "node:events";
import { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import type { Hono } from "hono";

const lastAnswersMs = 1_000;

export interface HttpServer {
  readonly url: string;
  close(): Promise<void>;
}

/** Serves an app on loopback. Port 0 takes a free one; a port that is taken rejects with `EADDRINUSE`. */
// biome-ignore lint/suspicious/noExplicitAny: an app may have any variables; the server uses none of them
export async function serveOnLoopback(app: Hono<any>, port: number): Promise<HttpServer> {
  const server = createAdaptorServer({ fetch: app.fetch });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = once(server, "close");
      server.close();
      await (server instanceof Server ? endConnections(server, closed) : closed);
    },
  };
}

/** Answers that are on their way arrive; whoever is still connected after that is cut off. */
async function endConnections(server: Server, closed: Promise<unknown>): Promise<void> {
  const idle = setInterval(() => server.closeIdleConnections(), 20);
  const rest = setTimeout(() => server.closeAllConnections(), lastAnswersMs);
  await closed;
  clearInterval(idle);
  clearTimeout(rest);
}
