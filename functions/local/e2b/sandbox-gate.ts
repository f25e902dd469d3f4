import {
  Agent,
  type ClientRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as openRequest,
  type ServerResponse,
} from "node:http";
import type { Socket } from "node:net";
import { isSameSecret } from "./control-plane.ts";
import { sendJson } from "./http-body.ts";
import type { Keeper } from "./keeper.ts";
import type { RequestCounts } from "./request-counts.ts";
import type { SandboxRegistry } from "./sandbox-registry.ts";

/**
 * The way into the sandboxes: a proxy that routes by the headers `E2b-Sandbox-Id` and `E2b-Sandbox-Port`.
 *
 * A connection into a sandbox is made inside its network namespace and handed over as a socket, so bytes pass through
 * this process once. Connections are kept for a second: an older one may be closed by its server just as it is used,
 * and a request can't be sent twice.
 */

/** The port of the inner service, which checks its own token and isn't a port of the sandbox's network. */
const ENVD_PORT = 49983;
const IDLE_LIMIT_MS = 1000;
const HOP_HEADERS = ["connection", "keep-alive", "proxy-connection", "upgrade", "te", "trailer"];

export interface SandboxGateOptions {
  readonly registry: SandboxRegistry;
  readonly keeper: Keeper;
  readonly counts: RequestCounts;
}

export interface SandboxGate {
  listen(request: IncomingMessage, response: ServerResponse): void;
  /** Cuts the connections into a sandbox. */
  cut(sandboxId: string): void;
  close(): void;
}

export function createSandboxGate({ registry, keeper, counts }: SandboxGateOptions): SandboxGate {
  const connections = new Map<Socket, string>();
  const agent = createAgent(keeper, connections);
  return {
    cut(sandboxId) {
      for (const [socket, owner] of connections) if (owner === sandboxId) socket.destroy();
    },
    close: () => agent.destroy(),
    listen(incoming, response) {
      const sandboxId = String(incoming.headers["e2b-sandbox-id"] ?? "");
      const port = Number(incoming.headers["e2b-sandbox-port"]);
      if (sandboxId === "" || !Number.isInteger(port) || port < 1 || port > 65535) {
        counts.add("unroutable");
        return refuse(incoming, response, 400, {
          message: "Invalid or missing E2b-Sandbox-Id or E2b-Sandbox-Port",
        });
      }
      counts.add(port === ENVD_PORT ? `envd ${pathOf(incoming)}` : `port ${port}`);
      const record = registry.findRunning(sandboxId);
      if (record === null) {
        return refuse(incoming, response, 502, { sandboxId, message: "The sandbox was not found" });
      }
      const token = incoming.headers["e2b-traffic-access-token"];
      if (port !== ENVD_PORT && record.trafficToken !== null && !isSameSecret(token, record.trafficToken)) {
        const fault = token === undefined ? "is missing" : "is invalid";
        const message = `Sandbox is secured with traffic access token. Token header 'e2b-traffic-access-token' ${fault}`;
        return refuse(incoming, response, 403, { sandboxId, message });
      }
      forward(agent, incoming, response, sandboxId, port, () => registry.findRunning(sandboxId) !== null);
    },
  };
}

/** Connections by the sandbox that they lead into; the agent keeps and reuses them. */
function createAgent(keeper: Keeper, connections: Map<Socket, string>): Agent {
  const agent = new Agent({ keepAlive: true, timeout: IDLE_LIMIT_MS, maxFreeSockets: 16 });
  agent.createConnection = (options, callback) => {
    const { host, port } = options as { host: string; port: number };
    keeper.dial(host, port === ENVD_PORT ? null : port).then(
      (socket) => {
        socket.setNoDelay(true);
        connections.set(socket, host);
        socket.once("close", () => connections.delete(socket));
        callback?.(null, socket);
      },
      (error: Error) => callback?.(error, undefined as never),
    );
    return undefined as never;
  };
  return agent;
}

function forward(
  agent: Agent,
  incoming: IncomingMessage,
  response: ServerResponse,
  sandboxId: string,
  port: number,
  isRunning: () => boolean,
): void {
  const outgoing = openRequest({
    agent,
    host: sandboxId,
    port,
    method: incoming.method ?? "GET",
    path: incoming.url ?? "/",
    headers: { ...withoutHopHeaders(incoming.headers), connection: "keep-alive" },
    setHost: false,
  });
  outgoing.on("response", (reply) => {
    response.writeHead(reply.statusCode ?? 502, withoutHopHeaders(reply.headers));
    reply.on("error", () => response.destroy());
    reply.pipe(response);
  });
  outgoing.on("error", (error) => answerFailure(error, incoming, response, { sandboxId, port, isRunning }));
  incoming.pipe(outgoing);
  response.on("close", () => stop(outgoing, response));
}

/** A caller who leaves early takes the inner request along. */
function stop(outgoing: ClientRequest, response: ServerResponse): void {
  if (!response.writableFinished) outgoing.destroy();
}

function answerFailure(
  error: Error,
  incoming: IncomingMessage,
  response: ServerResponse,
  { sandboxId, port, isRunning }: { sandboxId: string; port: number; isRunning: () => boolean },
): void {
  if (response.destroyed || response.headersSent) {
    response.destroy();
  } else if (!isRunning()) {
    refuse(incoming, response, 502, { sandboxId, message: "The sandbox was not found" });
  } else if (/refused/i.test(error.message)) {
    refuse(incoming, response, 502, {
      sandboxId,
      message: "The sandbox is running but port is not open",
      port,
    });
  } else {
    // What was behind the port took the connection and dropped it: the caller sees it dropped, too.
    response.destroy();
  }
}

function refuse(
  incoming: IncomingMessage,
  response: ServerResponse,
  code: number,
  body: Record<string, unknown>,
): void {
  incoming.resume();
  sendJson(response, code, { ...body, code });
}

function withoutHopHeaders(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = { ...headers };
  for (const name of HOP_HEADERS) delete kept[name];
  return kept;
}

const pathOf = (request: IncomingMessage) => (request.url ?? "/").split("?")[0] ?? "/";
