/**
 * Waiting for a supervisor that was just started to say what it has proved.
 *
 * The first requests may well fail: the port opens when Python is up, and what stands between may take its time, too.
 * So no failed request is an answer; only a supervisor's own word, its end, or the end of the time is.
 */
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";
import { readHealth, type SupervisorHealth } from "./supervisor-client.ts";
import type { Connection } from "./supervisor-http.ts";

const firstPauseMs = 40;
const longestPauseMs = 400;
const healthTimeoutMs = 2_000;

export type Readiness =
  | { readonly kind: "ready"; readonly version: string; readonly instance: string | null }
  | { readonly kind: "refused"; readonly failed: Extract<SupervisorHealth, { kind: "refused" }>["failed"] }
  /** `giveUp` was aborted; `last` is what was heard last. */
  | { readonly kind: "given_up"; readonly last: "nothing" | "starting"; readonly fault: Fault | null };

/** Asks until the supervisor is ready or refuses, or until `giveUp` is aborted. */
export async function awaitReadiness(
  connection: Connection,
  clock: Clock,
  giveUp: AbortSignal,
): Promise<Readiness> {
  let last: "nothing" | "starting" = "nothing";
  let fault: Fault | null = null;
  for (let pauseMs = firstPauseMs; !giveUp.aborted; pauseMs = Math.min(pauseMs * 1.3, longestPauseMs)) {
    const health = await ask(connection, clock, giveUp);
    if (health instanceof Fault) {
      if (!giveUp.aborted) [last, fault] = ["nothing", health];
    } else if (health.kind === "ready") return health;
    else if (health.kind === "refused") return { kind: "refused", failed: health.failed };
    else last = "starting";
    await clock.sleep(pauseMs, giveUp);
  }
  return { kind: "given_up", last, fault };
}

async function ask(
  connection: Connection,
  clock: Clock,
  giveUp: AbortSignal,
): Promise<SupervisorHealth | Fault> {
  // Not AbortSignal.timeout: what AbortSignal.any makes of it is garbage-collected on Node 20 and never fires.
  const late = new AbortController();
  const answered = new AbortController();
  void clock.sleep(healthTimeoutMs, answered.signal).then(() => late.abort());
  try {
    return await readHealth(connection, AbortSignal.any([giveUp, late.signal]));
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  } finally {
    answered.abort();
  }
}
