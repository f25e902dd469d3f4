/**
 * A second look at a worker that fell silent, over a connection of its own: is it the worker, or the way that its
 * request took?
 */
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";
import { readHealth } from "./supervisor-client.ts";
import { type Connection, NoConnection } from "./supervisor-http.ts";

/** A supervisor answers within milliseconds, from whatever it is busy with. */
const lookWithinMs = 5_000;

export type Sighting =
  /** The supervisor that is meant is there, and ready. */
  | { readonly kind: "well" }
  /** It is there, but is not what it was. */
  | { readonly kind: "changed"; readonly why: string }
  /** No connection can be made: nothing is known of the worker. */
  | { readonly kind: "no_way"; readonly why: string }
  /** There is a connection, and no supervisor's answer. */
  | { readonly kind: "mute"; readonly why: string };

export async function lookAgain(
  connection: Connection,
  clock: Clock,
  signal: AbortSignal,
): Promise<Sighting> {
  const late = new AbortController();
  const seen = new AbortController();
  void clock.sleep(lookWithinMs, seen.signal).then(() => late.abort());
  try {
    const both = AbortSignal.any([signal, late.signal]);
    const health = await readHealth(connection, both, { newConnection: true });
    if (health.kind !== "ready") return { kind: "changed", why: "it is not ready any more" };
    const meant = connection.headers["x-supervisor-instance"];
    const isMeant = meant === undefined || health.instance === null || health.instance === meant;
    return isMeant ? { kind: "well" } : { kind: "changed", why: "its supervisor was started again" };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (error.cause instanceof NoConnection) return { kind: "no_way", why: error.message };
    return { kind: error.code === "supervisor_protocol" ? "changed" : "mute", why: error.message };
  } finally {
    seen.abort();
  }
}
