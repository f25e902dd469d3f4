/**
 * The connections of `fetch`, on which E2B's client asks: those that were idle for too long are closed before a call.
 *
 * `fetch` itself keeps them for 4 s, by a timer; but a timer doesn't run while a process is frozen, and a network forgets
 * the process's flows meanwhile. What is asked on such a flow has no answer until its time limit. Node tells of each
 * connection and request on diagnostics channels; nothing of that is taken for granted, and what isn't told isn't closed.
 */
import { subscribe } from "node:diagnostics_channel";
import type { Duplex } from "node:stream";
import { keptForMs } from "./kept-connections.ts";

interface Origin {
  readonly sockets: Set<Duplex>;
  /** Requests that have no end yet. */
  readonly underWay: Set<unknown>;
  idleSinceMs: number;
}

const origins = new Map<string, Origin>();
let listens = false;

interface Told {
  readonly request?: { readonly origin?: unknown };
  readonly connectParams?: { readonly protocol?: unknown; readonly host?: unknown };
  readonly socket?: Duplex;
}

/** Begins to listen, once in a process. `nowMs` must count the time in which the process is frozen, too. */
export function listenForConnections(nowMs: () => number): void {
  if (listens) return;
  listens = true;
  subscribe("undici:client:connected", (message) => {
    const { connectParams, socket } = message as Told;
    if (connectParams === undefined || socket === undefined) return;
    const { sockets } = originOf(`${connectParams.protocol}//${connectParams.host}`);
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  subscribe("undici:request:create", (message) => {
    const { request } = message as Told;
    originOf(String(request?.origin)).underWay.add(request);
  });
  for (const end of ["undici:request:trailers", "undici:request:error"]) {
    subscribe(end, (message) => {
      const { request } = message as Told;
      const origin = originOf(String(request?.origin));
      origin.underWay.delete(request);
      origin.idleSinceMs = nowMs();
    });
  }
}

/** Closes what was idle for too long. */
export function closeIdleConnections(nowMs: number): void {
  for (const [name, { sockets, underWay, idleSinceMs }] of origins) {
    if (underWay.size > 0 || Math.abs(nowMs - idleSinceMs) <= keptForMs) continue;
    for (const socket of sockets) socket.destroy();
    origins.delete(name);
  }
}

function originOf(name: string): Origin {
  const known = origins.get(name) ?? { sockets: new Set(), underWay: new Set(), idleSinceMs: 0 };
  origins.set(name, known);
  return known;
}
