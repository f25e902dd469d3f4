/** A proxy in front of an HTTP server that fails on demand, as networks, gateways and servers do. */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export type Accident =
  | "pass"
  /** Not forwarded: the server never sees it. */
  | { readonly status: number; readonly body?: string; readonly headers?: Record<string, string> }
  | "reset_before"
  | "hang_before"
  /** Forwarded, and only then lost. */
  | "reset_after"
  | "hang_after"
  | { readonly after: { readonly status: number; readonly body?: string } }
  /** The answer's status and headers come, and a part of its body. */
  | "cut_answer";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  /** How long its answer took; undefined until it was whole. */
  wallMs?: number;
}

export interface FaultyProxy {
  readonly url: string;
  readonly seen: SeenRequest[];
  /** Decides each request's fate; everything passes until it is set. */
  plan: (request: SeenRequest) => Accident | Promise<Accident>;
  close(): Promise<void>;
}

export async function startFaultyProxy(targetUrl: string): Promise<FaultyProxy> {
  const proxy: { -readonly [Key in keyof FaultyProxy]: FaultyProxy[Key] } = {
    url: "",
    seen: [],
    plan: () => "pass",
    close: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
  const server = http.createServer(async (request, response) => {
    const startedMs = performance.now();
    const body = await buffer(request);
    const seen: SeenRequest = {
      method: request.method ?? "",
      path: request.url ?? "",
      headers: request.headers,
      body: body.toString(),
    };
    proxy.seen.push(seen);
    response.once("close", () => {
      seen.wallMs = performance.now() - startedMs;
    });
    const accident = await proxy.plan(seen);
    if (accident === "hang_before") return;
    if (accident === "reset_before") return void response.destroy();
    if (typeof accident === "object" && "status" in accident) return answer(response, accident);
    const reply = await forward(targetUrl, request, body, accident === "pass" ? response : null);
    if (reply === null) return void response.destroy();
    if (accident === "pass")
      return void reply.pipe(response.writeHead(reply.statusCode ?? 502, reply.headers));
    const whole = await firstOf(reply);
    if (accident === "reset_after") return void response.destroy();
    if (accident === "hang_after") return;
    if (accident === "cut_answer") {
      response.writeHead(reply.statusCode ?? 502, {
        "content-type": "application/json",
        "content-length": "9999",
      });
      response.write(whole.subarray(0, 10), () => response.destroy());
      return;
    }
    answer(response, accident.after);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return proxy;
}

function answer(
  response: http.ServerResponse,
  { status, body, headers }: { readonly status: number; readonly body?: string; readonly headers?: object },
): void {
  const text = body ?? JSON.stringify({ code: status, message: `the proxy says ${status}` });
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(text);
}

/** The reply's head; its body is still to be read. A caller, if given, who leaves takes the forwarded request along. */
function forward(
  targetUrl: string,
  request: http.IncomingMessage,
  body: Buffer,
  caller: http.ServerResponse | null,
): Promise<http.IncomingMessage | null> {
  return new Promise((resolve) => {
    const { "transfer-encoding": _, ...headers } = request.headers;
    const url = targetUrl + (request.url ?? "/");
    const outgoing = http.request(url, {
      method: request.method ?? "GET",
      headers: { ...headers, "content-length": String(body.length), connection: "close" },
      agent: false,
    });
    outgoing.on("response", resolve);
    outgoing.on("error", () => resolve(null));
    caller?.on("close", () => outgoing.destroy());
    outgoing.end(body);
  });
}

/** The whole of a short body; the beginning of a stream that doesn't end. */
async function firstOf(reply: http.IncomingMessage): Promise<Buffer> {
  if (reply.headers["content-length"] !== undefined || reply.statusCode === 204) return buffer(reply);
  const [piece] = (await once(reply, "data")) as [Buffer];
  return piece;
}
