import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../adapters/system-clock.ts";
import type { Clock } from "../../rewards/ports.ts";
import { createControlPlane } from "./control-plane.ts";
import { startKeeper } from "./keeper.ts";
import { PLANS, type Plan, type PlanName } from "./plan.ts";
import { createRequestCounts } from "./request-counts.ts";
import { createSandboxGate } from "./sandbox-gate.ts";
import { createSandboxRegistry, type SandboxRegistry } from "./sandbox-registry.ts";

/**
 * A server that E2B's unmodified clients take for E2B, with real Linux sandboxes behind it.
 *
 * What E2B guarantees and this keeps: the REST API of sandboxes (create, connect, list, get, timeout, pause, kill), the
 * service inside (files, processes), ports by routing headers, tokens, the plan's limits, and ends by timeout. What it
 * hasn't: templates, snapshots, terminals, watching folders, the internet. Those are answered with 501, never guessed.
 *
 * A sandbox has user, mount, pid, network, ipc and uts namespaces of its own and sees of the host its programs only,
 * read-only. That keeps a mistake from doing harm; it isn't a machine of its own as on E2B, and the host's memory and
 * kernel are shared.
 *
 * When this process ends, by SIGKILL too, every sandbox ends with it, and nothing is left on the disk.
 */
export interface E2bServerOptions {
  /** What clients must send as `X-API-KEY`. */
  readonly apiKey: string;
  /** A plan of E2B's, changed in what is given besides. Default: `hobby`. */
  readonly plan?: PlanName | (Partial<Plan> & { readonly basis?: PlanName });
  /** CPUs of one sandbox, out of those that this process may use. Default: 1. */
  readonly cpuCount?: number;
  /** Default: 127.0.0.1. */
  readonly host?: string;
  /** Port of the REST API, 0 for any free one. Default: 0. */
  readonly port?: number;
  /** Port of the way into sandboxes, 0 for any free one. Default: 0. */
  readonly sandboxPort?: number;
  readonly clock?: Clock;
  readonly log?: (line: string) => void;
}

export interface E2bServer {
  /** For `E2B_API_URL`. */
  readonly apiUrl: string;
  /** For `E2B_SANDBOX_URL`. */
  readonly sandboxUrl: string;
  /** Requests served, by kind. */
  requestCounts(): Readonly<Record<string, number>>;
  /** Sandboxes there are now. */
  sandboxCounts(): { readonly running: number; readonly paused: number };
  /** Ends every sandbox, then the server. */
  close(): Promise<void>;
}

/** Starts the server. Throws `Error`, saying what is missing, where the host can't isolate a sandbox. */
export async function startE2bServer(options: E2bServerOptions): Promise<E2bServer> {
  const { host = "127.0.0.1", log = () => {}, clock = systemClock } = options;
  let registry: SandboxRegistry | undefined;
  const keeper = await startKeeper({
    onDied: (sandboxId) => registry?.forget(sandboxId),
    onLost: (detail) => {
      log(`the keeper of sandboxes is lost: ${detail}`);
      for (const { id } of [...(registry?.all() ?? [])]) registry?.forget(id);
    },
    onLog: log,
  });
  const counts = createRequestCounts();
  const known = createSandboxRegistry({
    keeper,
    plan: resolvePlan(options.plan ?? "hobby"),
    cpuCount: options.cpuCount ?? 1,
    clock,
    log,
    onUnreachable: (sandboxId) => gate.cut(sandboxId),
  });
  registry = known;
  const gate = createSandboxGate({ registry: known, keeper, counts });
  const servers: Server[] = [];
  const close = async () => {
    await known.killAll();
    gate.close();
    await keeper.close();
    await Promise.all(servers.map(stopServer));
  };
  try {
    const api = createControlPlane({ apiKey: options.apiKey, registry: known, counts, log });
    const apiUrl = await openServer(servers, api, host, options.port ?? 0);
    const sandboxUrl = await openServer(servers, gate.listen, host, options.sandboxPort ?? 0);
    return {
      apiUrl,
      sandboxUrl,
      requestCounts: counts.snapshot,
      sandboxCounts() {
        const paused = [...known.all()].filter((record) => record.state === "paused").length;
        return { running: [...known.all()].length - paused, paused };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function resolvePlan(plan: NonNullable<E2bServerOptions["plan"]>): Plan {
  if (typeof plan === "string") return PLANS[plan];
  const { basis = "hobby", ...changes } = plan;
  return { ...PLANS[basis], ...changes };
}

async function openServer(
  servers: Server[],
  listener: RequestListener,
  host: string,
  port: number,
): Promise<string> {
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 60_000 }, listener);
  server.listen(port, host);
  await once(server, "listening");
  servers.push(server);
  return `http://${host}:${(server.address() as AddressInfo).port}`;
}

async function stopServer(server: Server): Promise<void> {
  const closed = once(server, "close");
  server.close();
  server.closeAllConnections();
  await closed;
}
