import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { Server } from "node:http";
import { type AddressInfo, Server as NetServer } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { answerLiveness } from "../api/health-routes.ts";
import { Problem, type ProblemCode, respondWithProblem } from "../api/problem.ts";
import { watchConnections } from "./http-connections.ts";

/** For whoever reads slowly; every answer is made by then. */
const lastAnswersMs = 10_000;

// biome-ignore lint/suspicious/noExplicitAny: an app may have any variables; the server uses none of them
type App = Hono<any>;
type Fetch = App["fetch"];

export interface HttpServer {
  readonly url: string;
  /** Requests go to the app from now on; before, each but that for `/healthz` is told that the server is starting. */
  serve(app: App): void;
  /**
   * Takes nothing more, no connection and no request. What still comes over an open one is told `stopping` where the
   * answer before it had begun; else the connection ends with that answer, and the client sees it closed.
   */
  refuse(): void;
  /** Refuses, and ends once everything that was taken is answered. */
  close(): Promise<void>;
}

/**
 * Takes a port of loopback before there is anything to serve. Port 0 takes a free one; a port that is taken rejects with
 * `EADDRINUSE`.
 */
export async function listenOnLoopback(port: number): Promise<HttpServer> {
  let fetch = startingApp.fetch;
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
    fetch = () => refusal("stopping", "The server is being stopped.");
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

/** It lives, and can't grade yet. */
const startingApp: App = new Hono()
  .get("/healthz", answerLiveness)
  .all("*", () => refusal("no_capacity", "The server is starting: it has no worker yet."));

function refusal(code: ProblemCode, detail: string): Response {
  return respondWithProblem(new Problem(code, detail), randomUUID());
}
