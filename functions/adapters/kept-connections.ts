/**
 * Connections that are kept for the next request, for a while.
 *
 * Whatever is between two machines forgets flows that are idle, after minutes or at once when one of them is frozen, and
 * tells nobody: what is sent on such a flow is lost without a reset, and only silence shows it. So a connection that was
 * idle for longer than moments is closed, not used: a handshake costs milliseconds, a dead flow costs whole timeouts.
 */
import http from "node:http";
import https from "node:https";
import type { Duplex } from "node:stream";

/**
 * Shorter than the shortest time after which servers usually hang up (5 s), and far below that of any network in
 * between. Requests of one batch follow each other in less.
 */
export const keptForMs = 4_000;

export interface KeptConnections {
  readonly http: http.Agent;
  readonly https: https.Agent;
}

/** `nowMs` must count the time in which the process is frozen, too. */
export function keepConnections(options: http.AgentOptions, nowMs: () => number): KeptConnections {
  const kept = { keepAlive: true, scheduling: "lifo", ...options } as const;
  return {
    http: forgetful(new http.Agent(kept), nowMs),
    https: forgetful(new https.Agent(kept), nowMs),
  };
}

/** What an agent does with its connections. Node documents all but the first, which its own agents replace likewise. */
interface AgentParts {
  addRequest(...request: unknown[]): void;
  createConnection(...how: unknown[]): Duplex | undefined;
  keepSocketAlive(socket: Duplex): boolean;
}

function forgetful<Agent extends http.Agent>(agent: Agent, nowMs: () => number): Agent {
  const parts = agent as unknown as AgentParts;
  const { addRequest, createConnection, keepSocketAlive } = parts;
  const idleSinceMs = new WeakMap<Duplex, number>();
  // A clock that was set back makes a connection old, too.
  const isStale = (socket: Duplex) => Math.abs(nowMs() - (idleSinceMs.get(socket) ?? 0)) > keptForMs;
  // Between the end of its answer and the connection's return to the agent nobody listens, and a request that is given
  // up in that moment has its connection end with an error: unheard, it would end the process.
  parts.createConnection = (...how) => createConnection.apply(agent, how)?.on("error", () => {});
  parts.keepSocketAlive = (socket) => {
    idleSinceMs.set(socket, nowMs());
    return keepSocketAlive.call(agent, socket);
  };
  parts.addRequest = (...request) => {
    // The agent passes over what is destroyed at its list's beginning, where those are that were idle longest.
    for (const idle of Object.values(agent.freeSockets)) {
      for (const socket of idle ?? []) if (isStale(socket)) socket.destroy();
    }
    addRequest.apply(agent, request);
  };
  return agent;
}
