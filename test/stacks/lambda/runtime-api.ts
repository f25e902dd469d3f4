/**
 * The platform's side of Lambda's Runtime API: a runtime asks for the next event, and posts what came of it.
 *
 * One event at a time, as on Lambda; the others wait. What a runtime streams is passed on as it arrives.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface RuntimeReply {
  readonly kind: "response" | "error";
  /** Its body is the answer; it must be read. */
  readonly message: IncomingMessage;
}

export interface RuntimeApi {
  /** `host:port`, for `AWS_LAMBDA_RUNTIME_API`. */
  readonly address: string;
  /** Hands an event over, and resolves with the beginning of its answer. Rejects when the runtime is gone. */
  invoke(requestId: string, event: unknown, timeoutMs: number): Promise<RuntimeReply>;
  /** Resolves when a runtime has asked for its first event, or with what it says of its failure to start. */
  readonly started: Promise<Start>;
  /** The runtime has ended: who waits for it waits in vain. */
  fail(reason: string): void;
  close(): void;
}

export interface Start {
  readonly initError: string | null;
}

interface Pending {
  readonly requestId: string;
  readonly event: unknown;
  readonly timeoutMs: number;
  resolve(reply: RuntimeReply): void;
  reject(error: Error): void;
}

const path = /^\/2018-06-01\/runtime\/(?:invocation\/(?:(next)|([^/]+)\/(response|error))|(init\/error))$/;

export async function startRuntimeApi(): Promise<RuntimeApi> {
  const queue: Pending[] = [];
  const underWay = new Map<string, Pending>();
  let tellStart: (start: Start) => void = () => {};
  const started = new Promise<Start>((resolve) => {
    tellStart = resolve;
  });
  let idle: ServerResponse | null = null;

  const dispatch = () => {
    const pending = idle === null ? undefined : queue.shift();
    if (pending === undefined || idle === null) return;
    underWay.set(pending.requestId, pending);
    deliver(idle, pending);
    idle = null;
  };
  const server = createServer(async (request, response) => {
    const [, next, requestId = "", kind, initError] = path.exec(request.url ?? "") ?? [];
    if (next !== undefined) {
      idle = response;
      tellStart({ initError: null });
      return dispatch();
    }
    const pending = underWay.get(requestId);
    underWay.delete(requestId);
    pending?.resolve({ kind: kind === "response" ? "response" : "error", message: request });
    if (initError !== undefined) tellStart({ initError: await readAll(request) });
    else if (pending === undefined) request.resume();
    request.on("end", () => response.writeHead(202).end());
    if (request.readableEnded) response.writeHead(202).end();
  });
  // A runtime may keep its connection for as long as an invocation takes.
  server.requestTimeout = 0;
  server.headersTimeout = 0;
  server.keepAliveTimeout = 0;
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    started,
    invoke(requestId, event, timeoutMs) {
      const reply = new Promise<RuntimeReply>((resolve, reject) => {
        queue.push({ requestId, event, timeoutMs, resolve, reject });
      });
      dispatch();
      return reply;
    },
    fail(reason) {
      for (const pending of [...underWay.values(), ...queue.splice(0)]) pending.reject(new Error(reason));
      underWay.clear();
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function deliver(response: ServerResponse, { requestId, event, timeoutMs }: Pending): void {
  response.writeHead(200, {
    "content-type": "application/json",
    "lambda-runtime-aws-request-id": requestId,
    "lambda-runtime-deadline-ms": String(Date.now() + timeoutMs),
    "lambda-runtime-invoked-function-arn": "arn:aws:lambda:us-east-1:123456789012:function:local",
  });
  response.end(JSON.stringify(event));
}

export async function readAll(message: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of message) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}
