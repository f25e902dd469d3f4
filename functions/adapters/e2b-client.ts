/**
 * E2B's own client, loaded when the first call is made: who only runs programs on workers that exist already never
 * pays for it.
 */
import type { ConnectionOpts } from "e2b";
import { Fault } from "../rewards/faults.ts";
import { answeredNothingSince, listenForAnswerHeads, retryAfterSince } from "./e2b-answer-heads.ts";
import { type E2bFailure, failureFault, readFailure } from "./e2b-failure.ts";
import type { ResolvedE2bOptions } from "./e2b-options.ts";
import { closeIdleConnections, listenForConnections } from "./fetch-connections.ts";

export type E2bSdk = Pick<typeof import("e2b"), "Sandbox">;

/**
 * What every call of the client is given. Of the variables that the client reads by itself, only `E2B_SANDBOX_URL` is
 * left to it, when the options have none: entry points give it to the options.
 */
export type E2bConnection = Pick<
  ConnectionOpts,
  "apiKey" | "domain" | "apiUrl" | "sandboxUrl" | "debug" | "requestTimeoutMs" | "retries" | "signal"
>;

export interface CallOptions {
  /** Gives up the call. */
  readonly signal?: AbortSignal;
  /** Default: the options' `requestTimeoutMs`. */
  readonly timeoutMs?: number;
  /** It asks for a list: an answer without a body is none, though the client takes it for an empty list. */
  readonly isListing?: boolean;
}

/** For what E2B does at once, and what a batch waits for that is over. */
const shortCallMs = 10_000;

export type E2bAnswer<Value> =
  | { readonly kind: "answered"; readonly value: Value }
  | { readonly kind: "failed"; readonly failure: E2bFailure };

type AskE2b<Value> = (sdk: E2bSdk, connection: E2bConnection) => Promise<Value>;

export interface E2bClient {
  readonly options: ResolvedE2bOptions;
  /** Makes one call of the control plane. Never throws: what failed is data. */
  call<Value>(ask: AskE2b<Value>, options?: CallOptions): Promise<E2bAnswer<Value>>;
  /** The same for a call that should take no time: half of a minute is too long for it. */
  callBriefly<Value>(ask: AskE2b<Value>, options?: Omit<CallOptions, "timeoutMs">): Promise<E2bAnswer<Value>>;
}

export function createE2bClient(options: ResolvedE2bOptions): E2bClient {
  const connection: E2bConnection = {
    apiKey: options.apiKey,
    domain: options.domain,
    apiUrl: options.apiUrl,
    ...(options.sandboxUrl === undefined ? {} : { sandboxUrl: options.sandboxUrl }),
    debug: false,
    requestTimeoutMs: options.requestTimeoutMs,
    // Whoever calls has a pace of its own, and a deadline: a wait in here would be one that nobody knows of.
    retries: 0,
  };
  const call: E2bClient["call"] = async (ask, given = {}) => {
    const { signal, timeoutMs = options.requestTimeoutMs, isListing = false } = given;
    const sdk = await loadSdk();
    closeIdleConnections(Date.now());
    if (sdk === null) return { kind: "failed", failure: { kind: "no_client" } };
    const startedAtMs = performance.now();
    const limit = limitTime(timeoutMs, signal);
    try {
      const value = await ask(sdk, { ...connection, signal: limit.signal });
      if (isListing && answeredNothingSince(options.apiUrl, startedAtMs))
        return { kind: "failed", failure: { kind: "unanswered", word: "an empty answer" } };
      return { kind: "answered", value };
    } catch (error) {
      const failure = limit.isLate() ? noAnswerWithin(timeoutMs) : readFailure(error, [options.apiKey]);
      return { kind: "failed", failure: withRetryAfter(failure, options.apiUrl, startedAtMs) };
    } finally {
      limit.end();
    }
  };
  const briefMs = Math.min(shortCallMs, options.requestTimeoutMs);
  return {
    options,
    call,
    callBriefly: (ask, given) => call(ask, { ...given, timeoutMs: briefMs }),
  };
}

/**
 * The client's own limit doesn't hold on Node 20 once it is given a signal: `AbortSignal.any` over
 * `AbortSignal.timeout` is garbage-collected there before it fires. So the limit is in the signal.
 */
function limitTime(timeoutMs: number, caller: AbortSignal | undefined) {
  const controller = new AbortController();
  let isLate = false;
  const giveUp = () => controller.abort();
  const timer = setTimeout(() => {
    isLate = true;
    giveUp();
  }, timeoutMs);
  if (caller?.aborted) giveUp();
  caller?.addEventListener("abort", giveUp, { once: true });
  return {
    signal: controller.signal,
    isLate: () => isLate,
    end() {
      clearTimeout(timer);
      caller?.removeEventListener("abort", giveUp);
    },
  };
}

function noAnswerWithin(timeoutMs: number): E2bFailure {
  return { kind: "unanswered", word: `within ${timeoutMs / 1_000} s` };
}

function withRetryAfter(failure: E2bFailure, apiUrl: string, sinceMs: number): E2bFailure {
  if (failure.kind !== "throttled" && failure.kind !== "busy") return failure;
  return { ...failure, retryAfterMs: retryAfterSince(apiUrl, sinceMs) };
}

async function loadSdk(): Promise<E2bSdk | null> {
  listenForAnswerHeads();
  listenForConnections(() => Date.now());
  try {
    return await import("e2b");
  } catch {
    return null;
  }
}

export type Whereabouts =
  | {
      readonly kind: "running";
      readonly memoryMib: number;
      readonly metadata: Readonly<Record<string, string>>;
    }
  | { readonly kind: "paused" }
  | { readonly kind: "gone" }
  | { readonly kind: "unknown"; readonly fault: Fault };

/** Asks the control plane for a sandbox: the only one whose "not found" means that it isn't there. */
export async function findSandbox(
  client: E2bClient,
  sandboxId: string,
  signal?: AbortSignal,
): Promise<Whereabouts> {
  const answer = await client.callBriefly(
    (sdk, connection) => sdk.Sandbox.getInfo(sandboxId, connection),
    signal === undefined ? {} : { signal },
  );
  if (answer.kind === "failed") {
    if (answer.failure.kind === "not_found") return { kind: "gone" };
    return { kind: "unknown", fault: failureFault(answer.failure, "tell of a sandbox") };
  }
  const { sandboxId: toldId, state, memoryMB: memoryMib, metadata } = answer.value;
  if (toldId !== sandboxId) return unknown("E2B told of another sandbox than it was asked for");
  if (state === "running") return { kind: "running", memoryMib, metadata };
  if (state === "paused") return { kind: "paused" };
  return unknown("E2B names an unknown state of a sandbox");
}

function unknown(detail: string): Whereabouts {
  return { kind: "unknown", fault: new Fault("sandbox_unavailable", detail) };
}
