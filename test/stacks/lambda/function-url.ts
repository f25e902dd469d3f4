/**
 * The platform's side of a function's URL: requests become events (payload format 2.0), streamed answers become
 * responses, piece by piece.
 *
 * As on Lambda, the function isn't told when its client has gone, and what it says then is read and dropped.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { RuntimeReply } from "./runtime-api.ts";

export type Invoke = (requestId: string, event: unknown) => Promise<RuntimeReply>;

export interface FunctionUrl {
  readonly url: string;
  close(): void;
}

/** Listens on a free port of loopback. */
export async function serveFunctionUrl(invoke: Invoke): Promise<FunctionUrl> {
  const server = createServer(async (request, response) => {
    response.on("error", () => {});
    try {
      const pieces: Buffer[] = [];
      for await (const piece of request) pieces.push(piece as Buffer);
      const requestId = randomUUID();
      const reply = await invoke(requestId, describeRequest(request, Buffer.concat(pieces), requestId));
      await passOn(reply, response);
    } catch {
      if (response.headersSent) response.destroy();
      else
        response
          .writeHead(502, { "content-type": "application/json" })
          .end('{"message":"Internal Server Error"}');
    }
  });
  server.requestTimeout = 0;
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

const textTypes = /^(text\/|application\/(.+\+)?(json|xml|javascript)|application\/x-www-form-urlencoded)/;

/** Text bodies are in the event as they are, everything else in base64. */
export function describeRequest(request: IncomingMessage, body: Buffer, requestId: string) {
  const { pathname, search, searchParams } = new URL(request.url ?? "/", "http://function.url");
  const { "content-type": type = "", "content-encoding": encoding } = request.headers;
  const isText = textTypes.test(type) && encoding === undefined;
  const now = new Date();
  return {
    version: "2.0",
    routeKey: "$default",
    rawPath: pathname,
    rawQueryString: search.slice(1),
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
    ),
    ...(search !== "" && { queryStringParameters: Object.fromEntries(searchParams) }),
    requestContext: {
      accountId: "anonymous",
      apiId: "local",
      domainName: "local.lambda-url.us-east-1.on.aws",
      domainPrefix: "local",
      http: {
        method: request.method ?? "GET",
        path: pathname,
        protocol: "HTTP/1.1",
        sourceIp: "127.0.0.1",
        userAgent: request.headers["user-agent"] ?? "",
      },
      requestId,
      routeKey: "$default",
      stage: "$default",
      time: now.toISOString(),
      timeEpoch: now.getTime(),
    },
    ...(body.length > 0 && { body: body.toString(isText ? "utf8" : "base64") }),
    isBase64Encoded: body.length > 0 && !isText,
  };
}

interface Prelude {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
}

const delimiter = Buffer.alloc(8);

/** The answer begins with its status and headers in JSON, and eight zero bytes. */
async function passOn({ kind, message }: RuntimeReply, response: ServerResponse): Promise<void> {
  if (kind === "error" || message.headers["lambda-runtime-function-response-mode"] !== "streaming") {
    message.resume();
    throw new Error("the function failed, or does not stream");
  }
  let head: Buffer | null = Buffer.alloc(0);
  for await (const piece of message) {
    if (head === null) {
      if (!response.destroyed) response.write(piece);
      continue;
    }
    head = Buffer.concat([head, piece as Buffer]);
    const at = head.indexOf(delimiter);
    if (at < 0) continue;
    const { statusCode, headers } = JSON.parse(head.subarray(0, at).toString()) as Prelude;
    response.writeHead(statusCode, headers);
    response.flushHeaders();
    response.write(head.subarray(at + delimiter.length));
    head = null;
  }
  const hasFailed = message.trailers["lambda-runtime-function-error-type"] !== undefined;
  if (hasFailed) response.destroy();
  else response.end();
}
