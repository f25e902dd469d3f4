import type { Hono } from "hono";
import { type HttpServer, listenOnLoopback } from "../../functions/local/http-server.ts";

/** Serves an app on a free port of loopback. */
export async function serveOnLoopback(app: Hono): Promise<HttpServer> {
  const server = await listenOnLoopback(0);
  server.serve(app);
  return server;
}
