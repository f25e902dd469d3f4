/**
 * Requests to a worker over kept-alive connections, on Node's own client: it costs less CPU than `fetch`, and it tells
 * a connection that was never made from one that broke before the answer, and that from one that broke in its middle.
 */
import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import { Fault } from "../rewards/faults.ts";
import { keepConnections } from "./kept-connections.ts";

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
  readonly upload?: UploadWatch;
}

/** Told how a request gets on its way. */
export interface UploadWatch {
  connected(): void;
  /** Another piece of the body was handed to the machine's network. */
  sentPiece(): void;
  /** All of it was, so many bytes in all; the network may still have to carry them. */
  sentAll(bytes: number): void;
}

export interface Answer {
  readonly status: number;
  readonly body: http.IncomingMessage;
}

/** There was no connection, so nothing was sent. */
export class NoConnection extends Error {
  /** Node's name of the reason. */
  readonly code: string;

  constructor(cause: NodeJS.ErrnoException) {
    super("no connection could be made", { cause });
    this.name = "NoConnection";
    this.code = cause.code ?? "no connection";
  }
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

/** A body is handed over in pieces, so that a slow way is seen to be one. */
const pieceBytes = 262_144;

/** Idle connections don't keep the process alive. */
const agents = keepConnections({ maxFreeSockets: 64 }, () => Date.now());

/**
 * Sends a request and resolves with the beginning of its answer. Rejects with `NoConnection`, `ResetBeforeAnswer`, or
 * Node's own error (which has a `code`).
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
    let isConnected = false;
    sent.on("socket", (socket) =>
      whenConnected(sent, socket, secure, () => {
        isConnected = true;
        request.upload?.connected();
      }),
    );
    sent.on("response", (message) => resolve({ status: message.statusCode ?? 0, body: message }));
    sent.on("error", (error: NodeJS.ErrnoException) => {
      if (!isConnected) return reject(new NoConnection(error));
      const reset = RESET_CODES.has(error.code ?? "") && !request.signal.aborted;
      reject(reset ? new ResetBeforeAnswer(error) : error);
    });
    sendBody(sent, body, request.upload);
  });
}

function whenConnected(sent: http.ClientRequest, socket: Socket, secure: boolean, tell: () => void): void {
  if (sent.reusedSocket) tell();
  else socket.once(secure ? "secureConnect" : "connect", tell);
}

/** Piece by piece, each once the one before has left this process. */
function sendBody(sent: http.ClientRequest, body: Buffer | undefined, watch: UploadWatch | undefined): void {
  if (body === undefined) return void sent.end();
  let at = 0;
  const sendNext = (error?: Error | null) => {
    if (error || sent.destroyed) return; // the request's own error tells why
    if (at > 0) watch?.sentPiece();
    const piece = body.subarray(at, at + pieceBytes);
    at += piece.length;
    if (at < body.length) sent.write(piece, sendNext);
    else sent.end(piece, () => watch?.sentAll(body.length));
  };
  sendNext();
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
