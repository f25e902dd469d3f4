/**
 * How a worker is reached: a compact text that its row keeps, and the connection made of it.
 *
 * The text holds what only the creation told (the traffic token, the domain, the supervisor's instance) and the pool's
 * id, from which the worker's own secret follows. The secret itself is in no row: it is derived again by whoever has E2B's key.
 */
import type { SandboxAddress, SandboxMeta, WorkerAddress } from "../pool/ports.ts";
import { Fault } from "../rewards/faults.ts";
import type { ResolvedE2bOptions } from "./e2b-options.ts";
import type { Connection } from "./supervisor-http.ts";
import { deriveWorkerSecret } from "./worker-secret.ts";

/**
 * The supervisor's port in its sandbox: below the ports that the kernel gives to outgoing connections, and none of
 * E2B's own.
 */
export const supervisorPort = 8713;

export interface WorkerAccess {
  readonly poolId: string;
  /** Null on a cloud that gives none: then the worker's secret alone guards it. */
  readonly trafficToken: string | null;
  /** Null when it is the configured one. */
  readonly domain: string | null;
  /** Names the supervisor's life; null until it has said so. */
  readonly instance: string | null;
}

/** `token pool-id instance [domain]`; with E2B's tokens (64 hexadecimal digits) and a 36-character id 91 bytes. */
export function writeAccess({ poolId, trafficToken, domain, instance }: WorkerAccess): string {
  const parts = [packToken(trafficToken), encodeURIComponent(poolId), packInstance(instance)];
  if (domain !== null) parts.push(encodeURIComponent(domain));
  return parts.join(" ");
}

/** Throws a `worker_lost` fault on a text of another making. */
export function readAccess(access: string): WorkerAccess {
  const [token, poolId, instance, domain, ...others] = access.split(" ");
  if (token === undefined || !poolId || !instance || others.length > 0) throw unreadable();
  try {
    return {
      trafficToken: unpackToken(token),
      poolId: decodeURIComponent(poolId),
      domain: domain === undefined ? null : decodeURIComponent(domain),
      instance: instance === "-" ? null : decodeURIComponent(instance.slice(1)),
    };
  } catch {
    throw unreadable();
  }
}

function unreadable(): Fault {
  return new Fault(
    "worker_lost",
    "The worker's row says in no known way how to reach it: another version made it.",
  );
}

/** Hexadecimal digits are half air. */
function packToken(token: string | null): string {
  if (token === null) return "-";
  const isHex = token.length % 2 === 0 && /^[0-9a-f]+$/.test(token);
  return isHex ? `x${Buffer.from(token, "hex").toString("base64url")}` : `t${encodeURIComponent(token)}`;
}

function unpackToken(packed: string): string | null {
  if (packed === "-") return null;
  if (packed.startsWith("x")) return Buffer.from(packed.slice(1), "base64url").toString("hex");
  if (packed.startsWith("t")) return decodeURIComponent(packed.slice(1));
  throw unreadable();
}

/** Told apart from none by its first letter. */
function packInstance(instance: string | null): string {
  return instance === null ? "-" : `i${encodeURIComponent(instance)}`;
}

/** A created sandbox's address, as the client's object tells it, and its supervisor, once that has told its instance. */
export function addressOf(
  sandbox: {
    readonly sandboxId: string;
    readonly sandboxDomain: string;
    readonly trafficAccessToken?: string | undefined;
  },
  { poolId }: SandboxMeta,
  options: ResolvedE2bOptions,
  instance: string | null = null,
): SandboxAddress {
  const domain = sandbox.sandboxDomain === options.domain ? null : sandbox.sandboxDomain;
  const access = writeAccess({ poolId, trafficToken: sandbox.trafficAccessToken ?? null, domain, instance });
  return { sandboxId: sandbox.sandboxId, access };
}

/**
 * The connection to a worker's supervisor: E2B's address of the port, or the one sandbox URL and the headers by which
 * that routes. Throws as `readAccess` does.
 */
export function connectionTo(
  options: ResolvedE2bOptions,
  worker: Pick<WorkerAddress, "sandboxId" | "generation" | "access">,
): Connection {
  const { sandboxId } = worker;
  const { poolId, trafficToken, domain, instance } = readAccess(worker.access);
  const secret = deriveWorkerSecret(options.apiKey, poolId, worker);
  return {
    baseUrl: options.sandboxUrl ?? `https://${supervisorPort}-${sandboxId}.${domain ?? options.domain}`,
    headers: {
      authorization: `Bearer ${secret}`,
      ...(trafficToken === null ? {} : { "e2b-traffic-access-token": trafficToken }),
      ...(instance === null ? {} : { "x-supervisor-instance": instance }),
      ...(options.sandboxUrl === undefined
        ? {}
        : { "E2b-Sandbox-Id": sandboxId, "E2b-Sandbox-Port": String(supervisorPort) }),
    },
  };
}
