/**
 * What to do when a chunk's request had no answer of the worker's supervisor, or not all of it.
 *
 * That alone proves nothing of the worker: E2B's proxy says the same of a sandbox that is gone and of one that it can't
 * reach for a moment, and a flow that a network has forgotten is as silent as a machine that is dead. So the control
 * plane is asked, and after silence or a cut the supervisor itself, over a new connection.
 *
 *     sandbox gone or paused                                    the worker is lost
 *     no connection can be made                                 the way's trouble: again until the deadline is near, or
 *                                                               for ten seconds while other workers are heard
 *     a proxy refuses (429, 503)                                again for a minute
 *     a proxy fails, or the connection breaks                   again a few times, then the supervisor is dead
 *     silence, and the supervisor answers on a new connection   again on such a one, twice
 *     silence there, too                                        again once
 *     a cut answer, and the supervisor is well or out of reach  its chunk is given back; the worker is kept
 *     a cut answer, and the supervisor says nothing             looked at again a few times, then the worker is lost
 *
 * If the control plane fails, too, E2B is out of order, and the worker is as good as any other: the request is sent
 * until the caller's time is up.
 */
import { backoffMs } from "../pool/polling.ts";
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";
import { type E2bClient, findSandbox, type Whereabouts } from "./e2b-client.ts";
import { type DecideReach, lost, type Unheard } from "./supervisor-unheard.ts";
import type { Sighting } from "./worker-confirmation.ts";

/** Requests to a supervisor whose address fails while its sandbox runs; also looks at one whose answer was cut. */
const mostTries = 4;
/** Requests that a supervisor may leave without a word while it answers others, and while it doesn't. */
const mostSilences = { well: 3, mute: 2 } as const;
/** How long a proxy may refuse while the sandbox runs. */
const refusedForMs = 60_000;
/** Without a connection to this worker for so long, while there is one to others, it is given back. */
const onlyThisOneMs = 10_000;
/** Without a connection so shortly before the deadline there is no use in going on: this is time to say so, twice. */
const lastTryMs = 12_000;

export interface ReachContext {
  readonly client: E2bClient;
  readonly sandboxId: string;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  /** When the chunk's time is up. */
  readonly deadlineAtMs: number;
  /** Aborted when nobody wants the request's answer any more. */
  readonly signal: AbortSignal;
  /** When any worker was last heard here. */
  readonly lastHeardAtMs: () => number;
  /** Looks at the supervisor over a new connection. */
  readonly lookAgain: () => Promise<Sighting>;
}

/** Tries in a row after which the control plane answered, and when the first was; silences in all. */
interface Seen {
  tries: number;
  sinceMs: number;
  silences: number;
  /** Since when no connection could be made; null: the last try had one. */
  unconnectedSinceMs: number | null;
}

/** For one request, however often it is sent. */
export function decideByControlPlane(ctx: ReachContext): DecideReach {
  const seen: Seen = { tries: 0, sinceMs: 0, silences: 0, unconnectedSinceMs: null };
  return async (unheard, tries) => {
    if (unheard.kind === "seen") return lost(unheard.why);
    if (unheard.kind === "cut") return judgeCut(ctx, unheard);
    const isSilent = unheard.kind === "silent";
    const [place, sighting] = await Promise.all([
      findSandbox(ctx.client, ctx.sandboxId, ctx.signal),
      isSilent ? ctx.lookAgain() : null,
    ]);
    if (ctx.signal.aborted) return null;
    const isOutOfOrder = place.kind === "unknown" && place.fault.retryable;
    seen.tries = isOutOfOrder ? 0 : seen.tries + 1;
    if (seen.tries === 1) seen.sinceMs = ctx.clock.nowMs();
    if (isSilent) seen.silences += 1;
    const trouble = sighting?.kind === "no_way" ? noConnection(unheard, sighting) : unheard;
    const fault = isMissing(place) ?? judge(ctx, trouble, sighting, seen, isOutOfOrder);
    if (fault !== null || sighting?.kind === "well") return fault;
    const pauseMs = Math.max(backoffMs(tries, ctx.random()), trouble.retryAfterMs ?? 0);
    if (trouble.kind !== "no_connection") seen.unconnectedSinceMs = null;
    else {
      seen.unconnectedSinceMs ??= ctx.clock.nowMs();
      if (isOnlyThisOne(ctx, seen.unconnectedSinceMs)) return onlyThisOne(trouble);
      if (leftMs(ctx) - pauseMs < lastTryMs) return unreachable(trouble);
    }
    await ctx.clock.sleep(pauseMs, ctx.signal);
    return null;
  };
}

function judge(
  { clock }: ReachContext,
  { kind, why, isRefusal }: Unheard,
  sighting: Sighting | null,
  seen: Seen,
  isOutOfOrder: boolean,
): Fault | null {
  if (sighting?.kind === "changed") return lost(sighting.why);
  if (kind === "no_connection") return null;
  if (sighting?.kind === "well")
    return seen.silences < mostSilences.well ? null : lost(`${why}, ${seen.silences} times`);
  if (isOutOfOrder) return null;
  if (sighting?.kind === "mute")
    return seen.silences < mostSilences.mute ? null : lost(`${why}, on a new connection neither`);
  if (isRefusal) {
    if (clock.nowMs() - seen.sinceMs < refusedForMs) return null;
    const detail = `E2B let no request through to the worker for ${refusedForMs / 1_000} s: ${why}.`;
    return new Fault("sandbox_unavailable", detail);
  }
  return seen.tries < mostTries ? null : lost(`${why}, ${seen.tries} times in a row`);
}

/** Some of the answer was told, so its request is never sent again; what is asked is who is to blame. */
async function judgeCut(ctx: ReachContext, { why }: Unheard): Promise<Fault | null> {
  for (let looks = 1; ; looks += 1) {
    const [place, sighting] = await Promise.all([
      findSandbox(ctx.client, ctx.sandboxId, ctx.signal),
      ctx.lookAgain(),
    ]);
    if (ctx.signal.aborted) return null;
    const missing = isMissing(place);
    if (missing !== null) return missing;
    if (sighting.kind === "changed") return lost(sighting.why);
    if (sighting.kind !== "mute") return wayBroke(why);
    if (looks === mostTries)
      return place.kind === "running" ? lost(`${why}, and doesn't answer any more`) : wayBroke(why);
    await ctx.clock.sleep(backoffMs(looks, ctx.random()), ctx.signal);
  }
}

function isMissing(place: Whereabouts): Fault | null {
  return place.kind === "gone" || place.kind === "paused" ? lost(`its sandbox is ${place.kind}`) : null;
}

function noConnection(unheard: Unheard, { why }: { readonly why: string }): Unheard {
  return { ...unheard, kind: "no_connection", why: `${unheard.why}, and then: ${why}` };
}

function leftMs({ deadlineAtMs, clock }: ReachContext): number {
  return deadlineAtMs - clock.nowMs();
}

/** Others were heard all the while, so another worker will do better. */
function isOnlyThisOne({ clock, lastHeardAtMs }: ReachContext, sinceMs: number): boolean {
  return clock.nowMs() - sinceMs >= onlyThisOneMs && lastHeardAtMs() - sinceMs >= onlyThisOneMs / 2;
}

function onlyThisOne({ why }: Unheard): Fault {
  const detail = `The worker could not be reached, while others could; its sandbox may well run: ${why}.`;
  return new Fault("sandbox_unavailable", detail);
}

function unreachable({ why }: Unheard): Fault {
  const detail = `The worker could not be reached until the deadline, though its sandbox may well run: ${why}.`;
  return new Fault("sandbox_unavailable", detail);
}

function wayBroke(why: string): Fault {
  const detail = `The way to the worker broke in the middle of its answer: ${why}. The worker itself is not known to have failed.`;
  return new Fault("sandbox_unavailable", detail);
}
