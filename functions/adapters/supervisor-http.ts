/**
 * Requests to a worker over kept-alive connections, on Node's own client: it costs less CPU than `fetch`, and it tells
 * a connection that broke before the answer from one that broke in its middle.
 */
import http from "node:http";
import https from "node:https";
import { Fault } from "../rewards/faults.ts";

export interface Connection {
  /** Such as `http://127.0.0.1:40123`; a path in it is kept. */
  readonly baseUrl: string;
  /** Sent with every request: the worker's secret, and what a proxy in between needs for its routing. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface WorkerRequest {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Don't reuse a connection. */
  readonly newConnection?: boolean;
}

export interface Answer {
  readonly status: number;
  readonly body: http.IncomingMessage;
}

/** The connection broke before the first byte of an answer. */
export class ResetBeforeAnswer extends Error {
  constructor(cause: Error) {
    super("the connection was reset before the answer", { cause });
    this.name = "ResetBeforeAnswer";
  }
}

const LARGEST_SMALL_ANSWER_BYTES = 65_536;
const RESET_CODES = new Set(["ECONNRESET", "EPIPE"]);

/** Idle connections don't keep the process alive; they are dropped before a frozen machine makes them useless. */
const agentOptions = { keepAlive: true, maxFreeSockets: 64, scheduling: "lifo" } as const;
const agents = { http: new http.Agent(agentOptions), https: new https.Agent(agentOptions) };

/**
 * Sends a request and resolves with the beginning of its answer. Rejects with `ResetBeforeAnswer`, or with Node's own
 * error (which has a `code`).
 */
export function sendRequest(connection: Connection, request: WorkerRequest): Promise<Answer> {
  const url = new URL(connection.baseUrl.replace(/\/$/, "") + request.path);
  const secure = url.protocol === "https:";
  const body = request.body === undefined ? undefined : Buffer.from(request.body);
  const options: http.RequestOptions = {
    method: request.method,
    agent: request.newConnection === true ? false : secure ? agents.https : agents.http,
    signal: request.signal,
    headers: {
      ...connection.headers,
      ...(body === undefined ? {} : { "content-type": "application/json", "content-length": body.length }),
    },
  };
  return new Promise((resolve, reject) => {
    const sent = secure ? https.request(url, options) : http.request(url, options);
    sent.on("response", (message) => resolve({ status: message.statusCode ?? 0, body: message }));
    sent.on("error", (error: NodeJS.ErrnoException) => {
      const reset = RESET_CODES.has(error.code ?? "") && !request.signal.aborted;
      reject(reset ? new ResetBeforeAnswer(error) : error);
    });
    sent.end(body);
  });
}

/** Reads a small answer to its end. */
export async function readWholeAnswer(answer: Answer): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer.body) {
    pieces.push(piece as Buffer);
    bytes += (piece as Buffer).length;
    if (bytes > LARGEST_SMALL_ANSWER_BYTES) {
      throw new Fault("supervisor_protocol", "The worker broke the protocol: an answer is too long.");
    }
  }
  return Buffer.concat(pieces).toString();
}
