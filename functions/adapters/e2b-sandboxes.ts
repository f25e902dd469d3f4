/**
 * The pool's sandboxes on E2B.
 *
 * Each answer is confirmed: "gone" is said only when the control plane itself said that there is no such sandbox, a
 * listing is whole or a fault, and what got no answer says so.
 */
import type { SandboxInfo } from "e2b";
import type { ListedSandbox, SandboxChange, SandboxCreation, Sandboxes } from "../pool/ports.ts";
import { Fault } from "../rewards/faults.ts";
import { createE2bClient, type E2bAnswer, type E2bClient, findSandbox } from "./e2b-client.ts";
import { createSandbox } from "./e2b-creation.ts";
import { type E2bFailure, failureFault } from "./e2b-failure.ts";
import { poolFilter, readMetadata } from "./e2b-metadata.ts";
import { type E2bOptions, resolveE2bOptions } from "./e2b-options.ts";
import { addressOf } from "./worker-access.ts";

/** More pages than any plan fills; a server that never comes to an end would be asked for ever. */
const mostPages = 1_000;

const unfiltered =
  "E2B's list of sandboxes has none of the pool that was asked for, and others: this cloud doesn't filter by metadata, " +
  "or answered another request";

export function createE2bSandboxes(options: E2bOptions): Sandboxes {
  const client = createE2bClient(resolveE2bOptions(options));
  return {
    create: (meta, ttlMs, signal) => create(client, meta, ttlMs, signal),
    kill: (sandboxId) => kill(client, sandboxId),
    renew: (sandboxId, ttlMs) => renew(client, sandboxId, ttlMs),
    list: (poolId) => list(client, poolId),
  };
}

async function create(
  client: E2bClient,
  ...[meta, ttlMs, signal]: Parameters<Sandboxes["create"]>
): Promise<SandboxCreation> {
  const made = await createSandbox(client, meta, ttlMs, signal);
  return made.kind === "created"
    ? { kind: "created", ...addressOf(made.sandbox, meta, client.options) }
    : made;
}

async function kill(client: E2bClient, sandboxId: string): Promise<SandboxChange> {
  const answer = await client.callBriefly((sdk, connection) => sdk.Sandbox.kill(sandboxId, connection));
  if (answer.kind === "failed") return changeFailed(answer.failure, "kill a sandbox");
  return { kind: answer.value ? "done" : "gone" };
}

async function renew(client: E2bClient, sandboxId: string, ttlMs: number): Promise<SandboxChange> {
  const answer = await client.callBriefly((sdk, connection) =>
    sdk.Sandbox.setTimeout(sandboxId, ttlMs, connection),
  );
  if (answer.kind === "answered") return { kind: "done" };
  if (answer.failure.kind !== "not_found") return changeFailed(answer.failure, "renew a sandbox");
  // A paused sandbox is not found here either, and it is still there.
  const found = await findSandbox(client, sandboxId);
  if (found.kind === "gone") return { kind: "gone" };
  const detail = `E2B could not renew a sandbox: it is ${found.kind === "unknown" ? "nowhere sure" : found.kind}`;
  const fault = found.kind === "unknown" ? found.fault : new Fault("sandbox_unavailable", detail);
  return { kind: "failed", reason: "ambiguous", fault };
}

function changeFailed(failure: E2bFailure, what: string): SandboxChange {
  const reason = failure.kind === "throttled" || failure.kind === "busy" ? "throttled" : "ambiguous";
  return { kind: "failed", reason, fault: failureFault(failure, what) };
}

async function list(client: E2bClient, poolId: string): Promise<ListedSandbox[]> {
  const found = new Map<string, ListedSandbox>();
  const read = await client.call(
    async (sdk, connection) => {
      const pages = sdk.Sandbox.list({
        ...connection,
        query: { metadata: poolFilter(poolId), state: ["running", "paused"] },
        limit: client.options.listPageSize,
      });
      for (let page = 0; pages.hasNext && page < mostPages; page += 1) {
        const items = await pages.nextItems();
        const ours = items.map((info) => readListed(info, poolId)).filter((listed) => listed !== null);
        // The answer to another question: this pool's own sandboxes would seem to be gone.
        if (items.length > 0 && ours.length === 0) return "another's";
        for (const listed of ours) found.set(listed.sandboxId, listed);
      }
      return pages.hasNext ? "endless" : "whole";
    },
    { isListing: true },
  );
  const extent = orThrow(read);
  if (extent === "endless")
    throw new Fault("sandbox_unavailable", `E2B's list of sandboxes has more than ${mostPages} pages`);
  if (extent === "another's") throw new Fault("sandbox_unavailable", unfiltered);
  return [...found.values()];
}

function orThrow<Value>(answer: E2bAnswer<Value>): Value {
  if (answer.kind === "answered") return answer.value;
  throw failureFault(answer.failure, "list its sandboxes");
}

function readListed(info: SandboxInfo, poolId: string): ListedSandbox | null {
  const meta = readMetadata(info.metadata, poolId);
  if (meta === null) return null;
  return { ...meta, sandboxId: info.sandboxId, startedAtMs: info.startedAt.getTime() };
}
