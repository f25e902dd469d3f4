import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, Server as NetServer } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import type { Hono } from "hono";
import { Problem, respondWithProblem } from "../api/problem.ts";
import { watchConnections } from "./http-connections.ts";

/** For whoever reads slowly; every answer is made by then. */
const lastAnswersMs = 10_000;

// biome-ignore lint/suspicious/noExplicitAny: an app may have any variables; the server uses none of them
type App = Hono<any>;
type Fetch = App["fetch"];

export interface HttpServer {
  readonly url: string;
  /** Requests go to the app from now on; before, each is told that the server is starting. */
  serve(app: App): void;
  /** Takes nothing more: no connection, and what comes over an open one is told that the server is stopping. */
  refuse(): void;
  /** Refuses, and ends once everything that was taken is answered. */
  close(): Promise<void>;
}

/** Serves an app on loopback. Port 0 takes a free one; a port that is taken rejects with `EADDRINUSE`. */
export async function serveOnLoopback(app: App, port: number): Promise<HttpServer> {
  const server = await listenOnLoopback(port);
  server.serve(app);
  return server;
}

/** Takes the port before there is anything to serve. */
export async function listenOnLoopback(port: number): Promise<HttpServer> {
  let fetch = refuseAll("The server is starting: it has no worker yet.");
  const handling = new Set<Promise<unknown>>();
  const server = createAdaptorServer({
    fetch: (...request: Parameters<Fetch>) => {
      const answer = Promise.resolve(fetch(...request));
      const handled = answer.catch(() => {}).finally(() => handling.delete(handled));
      handling.add(handled);
      return answer;
    },
  }) as Server;
  const connections = watchConnections(server);
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  let closed: Promise<unknown> | null = null;
  const refuse = () => {
    if (closed !== null) return;
    closed = once(server, "close");
    fetch = refuseAll("The server is stopping.");
    // Not HTTP's own `close`, which cuts off answers that are made and not yet read.
    NetServer.prototype.close.call(server);
    connections.endWithAnswers();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    serve(app) {
      fetch = app.fetch;
    },
    refuse,
    async close() {
      refuse();
      // A request whose caller is gone goes on, and may still be making what whoever closes us wants to end.
      while (handling.size > 0) await Promise.all(handling);
      const rest = setTimeout(connections.cutAll, lastAnswersMs);
      await closed;
      clearTimeout(rest);
    },
  };
}

function refuseAll(detail: string): Fetch {
  return () => respondWithProblem(new Problem("no_capacity", detail), randomUUID());
}
