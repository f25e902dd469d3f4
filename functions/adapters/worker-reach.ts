/**
 * What to do when a request didn't get to a worker's supervisor: somebody in between answered, or there was no connection.
 *
 * That proves nothing of the worker: E2B's proxy says the same of a sandbox that is gone and of one that it can't reach
 * for a moment. So the control plane is asked. If the sandbox is gone, so is the worker. If it runs, a proxy that
 * refuses (429, 503) is asked again for a minute, and one that fails a few times: then the supervisor is taken for dead.
 * If the control plane fails, too, E2B is out of order, and the worker is as good as any other: the request is sent
 * until the caller's time is up.
 */
import { backoffMs } from "../pool/polling.ts";
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";
import { type E2bClient, findSandbox, type Whereabouts } from "./e2b-client.ts";
import type { DecideReach, Unreached } from "./supervisor-client.ts";

/** Requests to a supervisor whose address fails while its sandbox runs. */
const mostTries = 4;
/** How long a proxy may refuse while the sandbox runs. */
const refusedForMs = 60_000;

export interface ReachContext {
  readonly client: E2bClient;
  readonly sandboxId: string;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** Aborted when nobody wants the request's answer any more. */
  readonly signal: AbortSignal;
}

/** For one request, however often it is sent. */
export function decideByControlPlane(ctx: ReachContext): DecideReach {
  const { client, sandboxId, clock, random, signal } = ctx;
  /** Tries in a row after which the control plane answered, and when the first was. */
  const seen = { tries: 0, sinceMs: 0 };
  return async (trouble, tries) => {
    const place = await findSandbox(client, sandboxId, signal);
    if (signal.aborted) return null;
    const isOutOfOrder = place.kind === "unknown" && place.fault.retryable;
    seen.tries = isOutOfOrder ? 0 : seen.tries + 1;
    if (seen.tries === 1) seen.sinceMs = clock.nowMs();
    const fault = isOutOfOrder ? null : judge(trouble, place, seen.tries, clock.nowMs() - seen.sinceMs);
    if (fault !== null) return fault;
    await clock.sleep(Math.max(backoffMs(tries, random()), trouble.retryAfterMs ?? 0), signal);
    return null;
  };
}

function judge(trouble: Unreached, place: Whereabouts, tries: number, forMs: number): Fault | null {
  if (place.kind === "gone" || place.kind === "paused") return lost(`its sandbox is ${place.kind}`);
  if (trouble.isRefusal) {
    if (forMs < refusedForMs) return null;
    const detail = `E2B let no request through to the worker for ${refusedForMs / 1_000} s: ${trouble.why}.`;
    return new Fault("sandbox_unavailable", detail);
  }
  return tries < mostTries ? null : lost(`${trouble.why}, ${tries} times in a row`);
}

function lost(why: string): Fault {
  return new Fault("worker_lost", `The worker was lost: ${why}.`);
}
