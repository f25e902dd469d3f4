/**
 * Creating a sandbox, and what is known when that fails.
 *
 * A refusal must be sure, for its slot is used again at once. 503 means by E2B's own word that nothing was changed, and
 * 500 that its work on the request has ended, but a proxy on the way says so too: the listing decides. After anything else that isn't a refusal the sandbox may
 * exist, or land later; the sweep finds it by its metadata.
 */
import type { Sandbox } from "e2b";
import type { CreationAmbiguous, CreationRefused, SandboxMeta } from "../pool/ports.ts";
import { Fault } from "../rewards/faults.ts";
import type { E2bClient } from "./e2b-client.ts";
import { type E2bFailure, failureFault } from "./e2b-failure.ts";
import { writeMetadata } from "./e2b-metadata.ts";

export type E2bCreation =
  | { readonly kind: "created"; readonly sandbox: Sandbox }
  | CreationRefused
  | CreationAmbiguous;

/** Creates a sandbox without a way out, closed to the public, that dies at the end of its time. */
export async function createSandbox(
  client: E2bClient,
  meta: SandboxMeta,
  ttlMs: number,
  signal: AbortSignal,
): Promise<E2bCreation> {
  if (signal.aborted) return refused(new Fault("sandbox_unavailable", "The creation was given up unasked."));
  const answer = await client.call(
    (sdk, connection) =>
      sdk.Sandbox.create(client.options.template, {
        ...connection,
        timeoutMs: ttlMs,
        metadata: writeMetadata(meta),
        allowInternetAccess: false,
        network: { allowPublicTraffic: false },
        lifecycle: { onTimeout: "kill" },
      }),
    { signal },
  );
  if (answer.kind === "answered") return { kind: "created", sandbox: answer.value };
  return explainFailure(client, meta, answer.failure, signal);
}

async function explainFailure(
  client: E2bClient,
  meta: SandboxMeta,
  failure: E2bFailure,
  signal: AbortSignal,
): Promise<CreationRefused | CreationAmbiguous> {
  const fault = failureFault(failure, "create a sandbox");
  switch (failure.kind) {
    case "throttled":
      return { kind: "refused", reason: "throttled", fault };
    case "no_client":
    case "unauthorized":
    case "rejected":
    case "unsent":
      return refused(fault);
    case "busy":
    case "broken":
      return (await isAbsent(client, meta, signal)) ? refused(fault) : { kind: "ambiguous", fault };
    case "conflict":
    case "not_found":
    case "unanswered":
      return { kind: "ambiguous", fault };
    default:
      return failure satisfies never;
  }
}

function refused(fault: Fault): CreationRefused {
  return { kind: "refused", reason: "failed", fault };
}

/** Whether a listing answered and has no sandbox of this very creation. */
async function isAbsent(client: E2bClient, meta: SandboxMeta, signal: AbortSignal): Promise<boolean> {
  const answer = await client.callBriefly(
    (sdk, connection) =>
      sdk.Sandbox.list({
        ...connection,
        query: { metadata: writeMetadata(meta), state: ["running", "paused"] },
        limit: 1,
      }).nextItems(),
    { signal, isListing: true },
  );
  return answer.kind === "answered" && answer.value.length === 0;
}
