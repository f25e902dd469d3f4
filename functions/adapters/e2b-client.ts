/**
 * E2B's own client, loaded when the first call is made: who only runs programs on workers that exist already never
 * pays for it.
 */
import type { ConnectionOpts } from "e2b";
import { Fault } from "../rewards/faults.ts";
import { type E2bFailure, failureFault, readFailure } from "./e2b-failure.ts";
import type { ResolvedE2bOptions } from "./e2b-options.ts";

export type E2bSdk = Pick<typeof import("e2b"), "Sandbox">;

/**
 * What every call of the client is given. Of the variables that the client reads by itself, only `E2B_SANDBOX_URL` is
 * left to it, when the options have none: entry points give it to the options.
 */
export type E2bConnection = Pick<
  ConnectionOpts,
  "apiKey" | "domain" | "apiUrl" | "sandboxUrl" | "debug" | "requestTimeoutMs" | "retries"
>;

export type E2bAnswer<Value> =
  | { readonly kind: "answered"; readonly value: Value }
  | { readonly kind: "failed"; readonly failure: E2bFailure };

export interface E2bClient {
  readonly options: ResolvedE2bOptions;
  /** Makes one call of the control plane. Never throws: what failed is data. */
  call<Value>(ask: (sdk: E2bSdk, connection: E2bConnection) => Promise<Value>): Promise<E2bAnswer<Value>>;
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
  return {
    options,
    async call(ask) {
      const sdk = await loadSdk();
      if (sdk === null) return { kind: "failed", failure: { kind: "no_client" } };
      try {
        return { kind: "answered", value: await ask(sdk, connection) };
      } catch (error) {
        return { kind: "failed", failure: readFailure(error, [options.apiKey]) };
      }
    },
  };
}

async function loadSdk(): Promise<E2bSdk | null> {
  try {
    return await import("e2b");
  } catch {
    return null;
  }
}

export type Whereabouts =
  | { readonly kind: "running"; readonly memoryMib: number }
  | { readonly kind: "paused" }
  | { readonly kind: "gone" }
  | { readonly kind: "unknown"; readonly fault: Fault };

/** Asks the control plane for a sandbox: the only one whose "not found" means that it isn't there. */
export async function findSandbox(
  client: E2bClient,
  sandboxId: string,
  signal?: AbortSignal,
): Promise<Whereabouts> {
  const answer = await client.call((sdk, connection) =>
    sdk.Sandbox.getInfo(sandboxId, { ...connection, ...(signal === undefined ? {} : { signal }) }),
  );
  if (answer.kind === "failed") {
    if (answer.failure.kind === "not_found") return { kind: "gone" };
    return { kind: "unknown", fault: failureFault(answer.failure, "tell of a sandbox") };
  }
  const { state, memoryMB: memoryMib } = answer.value;
  if (state === "running") return { kind: "running", memoryMib };
  if (state === "paused") return { kind: "paused" };
  return {
    kind: "unknown",
    fault: new Fault("sandbox_unavailable", "E2B names an unknown state of a sandbox"),
  };
}
