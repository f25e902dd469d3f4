/**
 * Whether the services that a command was pointed at are there at all: told in seconds, before anything is started.
 *
 * Any answer will do. What is wrong with a service that answers is for the product to find out, which also waits for
 * one that is down for a while; an address at which nothing is, is mostly a slip.
 */
import { resolveE2bOptions } from "../adapters/e2b-options.ts";
import { Fault, type FaultCode } from "../rewards/faults.ts";
import type { LocalStackOptions } from "./stack.ts";

/** Together less than 10 s. */
const triedForMs = 6_000;
const eachTryMs = 3_000;
const betweenTriesMs = 500;

export interface Service {
  readonly name: string;
  /** Where its address comes from. */
  readonly variable: string;
  readonly url: string;
  readonly code: FaultCode;
}

/** Throws a `Fault` that names the address and what the network said. */
export async function requireReachable(services: readonly Service[], signal: AbortSignal): Promise<void> {
  await Promise.all(services.map((service) => reach(service, signal)));
}

/** What a local stack does not start itself. */
export function listServices({
  e2b,
  dynamoDbEndpoint,
}: Pick<LocalStackOptions, "e2b" | "dynamoDbEndpoint">): Service[] {
  const services: Service[] = [];
  const code = "sandbox_unavailable";
  if (e2b) {
    const variable = e2b.domain && !e2b.apiUrl ? "E2B_DOMAIN" : "E2B_API_URL";
    services.push({ name: "E2B", variable, url: resolveE2bOptions(e2b).apiUrl, code });
    if (e2b.sandboxUrl) {
      services.push({ name: "E2B's sandboxes", variable: "E2B_SANDBOX_URL", url: e2b.sandboxUrl, code });
    }
  }
  if (dynamoDbEndpoint) {
    const variable = "DYNAMODB_ENDPOINT";
    services.push({ name: "DynamoDB", variable, url: dynamoDbEndpoint, code: "store_unavailable" });
  }
  return services;
}

export function endpointAt(url: string): Service {
  return { name: "The endpoint", variable: "CODE_REWARDS_URL", url, code: "misconfigured" };
}

async function reach({ name, variable, url, code }: Service, signal: AbortSignal): Promise<void> {
  const endsAtMs = performance.now() + triedForMs;
  for (;;) {
    const problem = await tryOnce(url, signal);
    if (problem === null) return;
    signal.throwIfAborted();
    if (performance.now() >= endsAtMs) {
      const { origin } = new URL(url);
      throw new Fault(code, `${name} can't be reached at ${origin} (${problem}). Check ${variable}.`);
    }
    await new Promise((resolve) => setTimeout(resolve, betweenTriesMs));
  }
}

/** What the network said; null for any answer. */
async function tryOnce(url: string, signal: AbortSignal): Promise<string | null> {
  const giveUp = new AbortController();
  const late = setTimeout(
    () => giveUp.abort(new Error(`no answer within ${eachTryMs / 1_000} s`)),
    eachTryMs,
  );
  const leave = () => giveUp.abort(signal.reason);
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    const answer = await fetch(url, { redirect: "manual", signal: giveUp.signal });
    await answer.body?.cancel();
    return null;
  } catch (error) {
    return wordOf(error);
  } finally {
    clearTimeout(late);
    signal.removeEventListener("abort", leave);
  }
}

/** `fetch` wraps what the network said, once or twice. */
function wordOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown };
  const { message, code, errors } = cause as NodeJS.ErrnoException & { errors?: readonly Error[] };
  return message || errors?.[0]?.message || code || String(cause);
}
