/** How each fault is done to a request. */
import { once } from "node:events";
import type http from "node:http";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Fault, FaultKind, GivenAnswer, SeenRequest } from "./fault.ts";
import { forward, passHead } from "./forwarding.ts";

/** A request on its way, and what is to happen to it. */
export interface Exchange {
  readonly request: SeenRequest;
  readonly incoming: http.IncomingMessage;
  readonly body: Buffer;
  /** The caller's end. */
  readonly outgoing: http.ServerResponse;
  readonly target: string;
  readonly agent: http.Agent;
  /** Aborted when the proxy is closed: nothing is forwarded after that. */
  readonly closing: AbortSignal;
  readonly fault: Fault | null;
  /** Must be called once the fault has really happened. */
  readonly onInjected: (kind: FaultKind) => void;
  readonly onAnswer: (piece: Buffer) => void;
}

/** Resolves when the proxy has nothing more to do for the request. Never rejects. */
export async function handle(exchange: Exchange): Promise<void> {
  const { fault, outgoing, onInjected } = exchange;
  if (fault === null) return pass(exchange);
  switch (fault.kind) {
    case "answer":
      onInjected(fault.kind);
      return give(exchange, fault);
    case "reset_before":
      onInjected(fault.kind);
      return reset(outgoing);
    case "hang_before":
      onInjected(fault.kind);
      return;
    case "delay":
      onInjected(fault.kind);
      return (await isThereAfter(fault.ms, outgoing)) ? pass(exchange) : undefined;
    case "late_request":
      onInjected(fault.kind);
      await sleep(fault.ms, undefined, { signal: exchange.closing, ref: false }).catch(() => {});
      return pass(exchange, { outlivesCaller: true });
    case "twice":
      return passTwice(exchange, fault.answered);
    case "cut":
      return passUntil(exchange, fault.afterBytes);
    case "drip":
      return passSlowly(exchange, fault);
    default:
      return changeWholeAnswer(exchange, fault);
  }
}

type WholeAnswerFault = Extract<
  Fault,
  { kind: "answer_after" | "reset_after" | "hang_after" | "late_answer" | "skew" | "rewrite" }
>;

/** Faults that need to know that the service is done: it is, whatever the caller does meanwhile. */
async function changeWholeAnswer(exchange: Exchange, fault: WholeAnswerFault): Promise<void> {
  const { outgoing, onInjected } = exchange;
  const reply = await forward(exchange, { outlivesCaller: true });
  // A stream may have no end while nobody reads it: its beginning shows that the service took the request.
  const isLost = fault.kind === "reset_after" || fault.kind === "hang_after" || fault.kind === "answer_after";
  const whole = reply && (isLost ? await firstOf(reply) : await buffer(reply).catch(() => null));
  if (!reply || whole === null) return reset(outgoing);
  exchange.onAnswer(whole);
  onInjected(fault.kind);
  switch (fault.kind) {
    case "answer_after":
      return give(exchange, fault);
    case "reset_after":
      return reset(outgoing);
    case "hang_after":
      return;
    case "late_answer":
      if (!(await isThereAfter(fault.ms, outgoing))) return;
      return end(reply, whole, outgoing);
    case "skew":
      return end(reply, skewTimes(reply, whole, fault.offsetMs), outgoing);
    case "rewrite":
      return end(reply, Buffer.from(fault.body(whole.toString())), outgoing);
  }
}

async function pass(exchange: Exchange, how = { outlivesCaller: false }): Promise<void> {
  const { outgoing, onAnswer } = exchange;
  const reply = await forward(exchange, how);
  if (reply === null) return reset(outgoing);
  passHead(reply, outgoing);
  reply.on("data", (piece: Buffer) => {
    onAnswer(piece);
    if (!outgoing.destroyed && !outgoing.write(piece)) {
      reply.pause();
      outgoing.once("drain", () => reply.resume());
    }
  });
  reply.once("end", () => outgoing.end());
  reply.once("error", () => {
    exchange.request.serviceFailed ||= !outgoing.destroyed;
    outgoing.destroy();
  });
}

async function passTwice(exchange: Exchange, answered: "first" | "second"): Promise<void> {
  if (answered === "second") {
    const first = await forward(exchange, { outlivesCaller: true });
    if (first) await buffer(first).catch(() => null);
    exchange.onInjected("twice");
    return pass(exchange);
  }
  await pass(exchange);
  const { status } = exchange.request;
  const second = await forward(exchange, { outlivesCaller: true });
  exchange.request.status = status;
  if (second === null) return;
  exchange.onInjected("twice");
  second.on("error", () => {});
  second.resume();
}

async function passUntil(exchange: Exchange, afterBytes: number): Promise<void> {
  const { outgoing } = exchange;
  const reply = await forward(exchange);
  if (reply === null) return reset(outgoing);
  passHead(reply, outgoing);
  outgoing.flushHeaders();
  let left = afterBytes;
  for await (const piece of quietly(reply)) {
    exchange.onAnswer(piece);
    if (piece.length <= left) {
      left -= piece.length;
      outgoing.write(piece);
      continue;
    }
    exchange.onInjected("cut");
    // The part arrives before the connection ends.
    if (left > 0) await new Promise((resolve) => outgoing.write(piece.subarray(0, left), resolve));
    reply.destroy();
    return void outgoing.destroy();
  }
  finish(reply, outgoing);
}

async function passSlowly(exchange: Exchange, drip: { readonly bytes: number; readonly everyMs: number }) {
  const { outgoing } = exchange;
  const reply = await forward(exchange);
  if (reply === null) return reset(outgoing);
  passHead(reply, outgoing);
  exchange.onInjected("drip");
  for await (const piece of quietly(reply)) {
    exchange.onAnswer(piece);
    for (let from = 0; from < piece.length; from += drip.bytes) {
      if (!(await isThereAfter(drip.everyMs, outgoing))) return void reply.destroy();
      outgoing.write(piece.subarray(from, from + drip.bytes));
    }
  }
  finish(reply, outgoing);
}

/** The pieces up to the end, or up to where the service broke off. */
async function* quietly(reply: http.IncomingMessage): AsyncGenerator<Buffer> {
  try {
    for await (const piece of reply) yield piece as Buffer;
  } catch {
    // Seen by `finish`: the reply is not complete.
  }
}

function finish(reply: http.IncomingMessage, outgoing: http.ServerResponse): void {
  if (reply.complete) outgoing.end();
  else outgoing.destroy();
}

function give({ request, outgoing }: Exchange, { status, body, headers }: GivenAnswer): void {
  const isTable = request.path === "table";
  const message = `the proxy says ${status}`;
  const error = isTable
    ? { __type: status < 500 ? "ThrottlingException" : "InternalServerError", message }
    : { code: status, message };
  const text = body ?? JSON.stringify(error);
  const type = isTable ? "application/x-amz-json-1.0" : "application/json";
  const length =
    headers?.["transfer-encoding"] === undefined ? { "content-length": Buffer.byteLength(text) } : {};
  outgoing.writeHead(status, { "content-type": type, ...length, ...headers });
  outgoing.end(text);
}

function end(reply: http.IncomingMessage, body: Buffer, outgoing: http.ServerResponse): void {
  passHead(reply, outgoing, { "content-length": String(body.length) });
  outgoing.end(body);
}

/** The caller gets ECONNRESET, as from a peer that has died. */
function reset(outgoing: http.ServerResponse): void {
  if (outgoing.socket) outgoing.socket.resetAndDestroy();
  else outgoing.destroy();
}

async function isThereAfter(ms: number, outgoing: http.ServerResponse): Promise<boolean> {
  if (outgoing.destroyed) return false;
  const left = new AbortController();
  const leave = () => left.abort();
  outgoing.once("close", leave);
  await sleep(ms, undefined, { signal: left.signal, ref: false }).catch(() => {});
  outgoing.off("close", leave);
  return !outgoing.destroyed;
}

/** The whole of a short body; the beginning of a stream. */
async function firstOf(reply: http.IncomingMessage): Promise<Buffer> {
  const isShort = reply.headers["content-length"] !== undefined || reply.statusCode === 204;
  if (isShort) return buffer(reply).catch(() => Buffer.alloc(0));
  const piece = await Promise.race([once(reply, "data"), once(reply, "end")]).catch(() => []);
  reply.on("error", () => {});
  reply.resume();
  return (piece[0] as Buffer | undefined) ?? Buffer.alloc(0);
}

/** Moves E2B's times; whatever isn't JSON stays. The header is moved in place. */
function skewTimes(reply: http.IncomingMessage, body: Buffer, offsetMs: number): Buffer {
  const move = (time: string) => new Date(Date.parse(time) + offsetMs);
  if (reply.headers.date) reply.headers.date = move(reply.headers.date).toUTCString();
  try {
    const moved = JSON.stringify(JSON.parse(body.toString()), (key, value) =>
      (key === "startedAt" || key === "endAt") && typeof value === "string"
        ? move(value).toISOString()
        : value,
    );
    return Buffer.from(moved);
  } catch {
    return body;
  }
}
