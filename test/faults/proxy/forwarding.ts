/** What a plain proxy does: a request goes on to its service, an answer's head comes back. */
import http from "node:http";
import type { Exchange } from "./injection.ts";

/** They concern one connection, not the message. */
const hopHeaders = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/**
 * Sends the request to its service and resolves with the head of the answer; null when there was none. A caller who
 * leaves takes it along, unless it is to outlive its caller.
 */
export function forward(
  exchange: Pick<Exchange, "request" | "incoming" | "body" | "outgoing" | "target" | "agent" | "closing">,
  { outlivesCaller } = { outlivesCaller: false },
): Promise<http.IncomingMessage | null> {
  const { request, incoming, body, outgoing, target, agent, closing } = exchange;
  return new Promise((resolve) => {
    if (closing.aborted || (outgoing.destroyed && !outlivesCaller)) return resolve(null);
    const sent = http.request(target.replace(/\/$/, "") + request.url, {
      method: request.method,
      headers: { ...withoutHopHeaders(incoming.headers), ...lengthOf(request.method, body) },
      agent,
    });
    sent.on("response", (reply) => {
      request.status = reply.statusCode ?? null;
      resolve(reply);
    });
    sent.on("error", () => {
      request.serviceFailed ||= outlivesCaller || !outgoing.destroyed;
      resolve(null);
    });
    if (!outlivesCaller) outgoing.once("close", () => outgoing.writableFinished || sent.destroy());
    sent.end(body);
  });
}

/** Sends the status and headers of an answer at once, as they come before the body of a stream. */
export function passHead(
  reply: http.IncomingMessage,
  outgoing: http.ServerResponse,
  changes: http.OutgoingHttpHeaders = {},
): void {
  if (outgoing.destroyed) return;
  outgoing.writeHead(reply.statusCode ?? 502, { ...withoutHopHeaders(reply.headers), ...changes });
  if (outgoing.getHeader("content-length") === undefined) outgoing.flushHeaders();
}

function lengthOf(method: string, body: Buffer): http.OutgoingHttpHeaders {
  return body.length === 0 && method === "GET" ? {} : { "content-length": body.length };
}

function withoutHopHeaders(headers: http.IncomingHttpHeaders): http.OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hopHeaders.includes(name)));
}
