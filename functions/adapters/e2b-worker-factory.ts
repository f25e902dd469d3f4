/**
 * Workers on E2B: a sandbox, our supervisor in it, and its word that isolation is proved.
 *
 * Creating one is a handful of requests: the sandbox, all files at once, the start, and asking until it is ready.
 * Reaching one that exists is none: address and secret follow from its row, and the client of E2B isn't even loaded.
 */
import type {
  SandboxMeta,
  WorkerAddress,
  WorkerCreation,
  WorkerExecutor,
  WorkerFactory,
  WorkerOrder,
  WorkerStopper,
} from "../pool/ports.ts";
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";
import { createE2bClient, type E2bClient, findSandbox } from "./e2b-client.ts";
import { createSandbox } from "./e2b-creation.ts";
import { type E2bOptions, type ResolvedE2bOptions, resolveE2bOptions } from "./e2b-options.ts";
import {
  placeSupervisor,
  type Startup,
  type SupervisorEnd,
  type SupervisorProcess,
  startSupervisor,
} from "./e2b-supervisor-process.ts";
import { cancel, executeChunk } from "./supervisor-client.ts";
import type { SupervisorFiles } from "./supervisor-files.ts";
import { addressOf, connectionTo } from "./worker-access.ts";
import { awaitReadiness, type Readiness } from "./worker-readiness.ts";
import { deriveWorkerSecret } from "./worker-secret.ts";

export interface WorkerFactoryOptions {
  readonly e2b: E2bOptions;
  /** What is sent to workers; read once, by `readSupervisorFiles`. */
  readonly supervisor: SupervisorFiles;
  /** Memory of the template's sandboxes, in MiB. Default: what E2B says, or 512 when it doesn't say. */
  readonly memoryMib?: number;
  /** How long a supervisor has to prove its isolation. Default: 30,000. */
  readonly readyTimeoutMs?: number;
  readonly clock: Clock;
}

const defaultMemoryMib = 512;
const defaultReadyTimeoutMs = 30_000;

export function createE2bWorkerFactory(options: WorkerFactoryOptions): WorkerFactory & WorkerStopper {
  const e2b = resolveE2bOptions(options.e2b);
  const client = createE2bClient(e2b);
  return {
    create: (order, signal) => createWorker(client, options, order, signal),
    attach: (worker) => attachWorker(e2b, options.clock, worker),
    async stop(worker, fencingToken, signal) {
      await cancel({ ...connectionTo(e2b, worker), fencingToken }, signal);
    },
  };
}

async function createWorker(
  client: E2bClient,
  options: WorkerFactoryOptions,
  order: WorkerOrder,
  signal: AbortSignal,
): Promise<WorkerCreation> {
  const made = await createSandbox(client, order, order.ttlMs, signal);
  if (made.kind !== "created") return made;
  const { sandbox } = made;
  const address = addressOf(sandbox, order, client.options);
  try {
    await bringUp({ client, sandbox, clock: options.clock, signal }, options, { ...order, ...address });
    return { kind: "created", ...address };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { kind: "unproved", sandboxId: sandbox.sandboxId, fault: error };
  }
}

/** Throws a `Fault` unless the sandbox has a ready supervisor of our version in the end. */
async function bringUp(
  startup: Startup,
  options: WorkerFactoryOptions,
  worker: SandboxMeta & WorkerAddress,
): Promise<void> {
  const e2b = startup.client.options;
  const secret = deriveWorkerSecret(e2b.apiKey, worker.poolId, worker);
  const [memoryMib] = await Promise.all([
    options.memoryMib ?? readMemoryMib(startup),
    placeSupervisor(startup, options.supervisor, secret),
  ]);
  const process = await startSupervisor(startup, memoryMib);
  try {
    const connection = connectionTo(e2b, worker);
    const readyTimeoutMs = options.readyTimeoutMs ?? defaultReadyTimeoutMs;
    const found = await firstOf(process, readyTimeoutMs, startup, (giveUp) =>
      awaitReadiness(connection, options.clock, giveUp),
    );
    const problem = problemOf(found, options.supervisor.version, readyTimeoutMs);
    if (problem !== null) throw problem;
  } finally {
    await process.leave();
  }
}

async function readMemoryMib({ client, sandbox, signal }: Startup): Promise<number> {
  const found = await findSandbox(client, sandbox.sandboxId, signal);
  return found.kind === "running" && found.memoryMib > 0 ? found.memoryMib : defaultMemoryMib;
}

/** The supervisor's readiness, its end, or neither by the deadline. */
async function firstOf(
  process: SupervisorProcess,
  timeoutMs: number,
  { clock, signal }: Startup,
  wait: (giveUp: AbortSignal) => Promise<Readiness>,
): Promise<Readiness | SupervisorEnd> {
  const over = new AbortController();
  const late = new AbortController();
  void clock.sleep(timeoutMs, over.signal).then(() => late.abort());
  try {
    const giveUp = AbortSignal.any([signal, late.signal, over.signal]);
    return await Promise.race([wait(giveUp), process.ended]);
  } finally {
    over.abort();
  }
}

function problemOf(found: Readiness | SupervisorEnd, version: string, timeoutMs: number): Fault | null {
  if ("exitCode" in found) return explainEnd(found);
  switch (found.kind) {
    case "ready":
      if (found.version === version) return null;
      return new Fault("misconfigured", "Another supervisor than ours answers in a new sandbox.");
    case "refused": {
      const reasons = found.failed.map(
        ({ property, detail, remedy }) => `${property}: ${detail}. To do: ${remedy}`,
      );
      return new Fault("isolation_failed", `A sandbox can't isolate programs. ${reasons.join("; ")}`);
    }
    case "given_up": {
      const when = `within ${timeoutMs} ms, or before the creation was given up`;
      if (found.last === "starting") {
        return new Fault("isolation_failed", `A sandbox did not prove its isolation ${when}.`);
      }
      const why = found.fault === null ? "" : ` Last: ${found.fault.message}`;
      return new Fault("sandbox_unavailable", `A sandbox's port could not be reached ${when}.${why}`);
    }
    default:
      return found satisfies never;
  }
}

/** The template decides how this ends, the same for every sandbox: trying again is of no use. */
function explainEnd({ exitCode, said }: SupervisorEnd): Fault {
  const remedy = "Use a template that has Python 3.9 or newer as python3 on the path.";
  const what = exitCode === 127 ? "found no python3" : `ended at its start with exit code ${exitCode}`;
  return new Fault(
    "misconfigured",
    `The supervisor ${what} in its sandbox${said === "" ? "" : ` (${said})`}. ${remedy}`,
  );
}

function attachWorker(e2b: ResolvedE2bOptions, clock: Clock, worker: WorkerAddress): WorkerExecutor {
  return {
    async *execute(chunk, fencingToken, signal) {
      yield* executeChunk({ ...connectionTo(e2b, worker), fencingToken }, chunk, signal, clock);
    },
  };
}
