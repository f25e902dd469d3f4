/**
 * Workers on E2B: a sandbox, our supervisor in it, and its word that isolation is proved.
 *
 * Creating one is a handful of requests: the sandbox, all files at once while its metadata is looked at, the start, and
 * asking until it is ready.
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
import { createE2bClient, type E2bClient, findSandbox, type Whereabouts } from "./e2b-client.ts";
import { createSandbox } from "./e2b-creation.ts";
import { isMetadataOf } from "./e2b-metadata.ts";
import { type E2bOptions, resolveE2bOptions } from "./e2b-options.ts";
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
import { lookAgain } from "./worker-confirmation.ts";
import { decideByControlPlane } from "./worker-reach.ts";
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
  /** Numbers in [0, 1), by which retries are spread. Default: `Math.random`. */
  readonly random?: () => number;
}

const defaultMemoryMib = 512;
const defaultReadyTimeoutMs = 30_000;

export function createE2bWorkerFactory(options: WorkerFactoryOptions): WorkerFactory & WorkerStopper {
  const e2b = resolveE2bOptions(options.e2b);
  const client = createE2bClient(e2b);
  const heard = { atMs: 0 };
  return {
    create: (order, signal) => createWorker(client, options, order, signal),
    attach: (worker) => attachWorker(client, options, worker, heard),
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
    const startup = { client, sandbox, clock: options.clock, random: options.random ?? Math.random, signal };
    const ready = await bringUp(startup, options, { ...order, ...address });
    if (ready === "not_ours") return { kind: "ambiguous", fault: answeredForAnother() };
    return { kind: "created", ...addressOf(sandbox, order, client.options, ready.instance) };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { kind: "unproved", sandboxId: sandbox.sandboxId, fault: error };
  }
}

/**
 * The instance of a ready supervisor of our version; throws a `Fault` when the sandbox has none in the end. `not_ours`:
 * it is another slot's sandbox, which this creation's answer named. Nothing was started in it; what was written, it has.
 */
async function bringUp(
  startup: Startup,
  options: WorkerFactoryOptions,
  worker: SandboxMeta & WorkerAddress,
): Promise<{ readonly instance: string | null } | "not_ours"> {
  const e2b = startup.client.options;
  const secret = deriveWorkerSecret(e2b.apiKey, worker.poolId, worker);
  const [place] = await Promise.all([
    findSandbox(startup.client, worker.sandboxId, startup.signal),
    placeSupervisor(startup, options.supervisor, secret),
  ]);
  if (place.kind === "running" && !isMetadataOf(place.metadata, worker)) return "not_ours";
  const process = await startSupervisor(startup, options.memoryMib ?? memoryMibOf(place));
  try {
    const connection = connectionTo(e2b, worker);
    const readyTimeoutMs = options.readyTimeoutMs ?? defaultReadyTimeoutMs;
    const found = await firstOf(process, readyTimeoutMs, startup, (giveUp) =>
      awaitReadiness(connection, options.clock, giveUp),
    );
    return { instance: instanceOf(found, options.supervisor.version, readyTimeoutMs) };
  } finally {
    await process.leave();
  }
}

function memoryMibOf(place: Whereabouts): number {
  return place.kind === "running" && place.memoryMib > 0 ? place.memoryMib : defaultMemoryMib;
}

/** Our own sandbox may exist; the other one has its own creator, and is not ours to kill. */
function answeredForAnother(): Fault {
  return new Fault("sandbox_unavailable", "E2B answered the creation of a sandbox with another one.");
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

function instanceOf(found: Readiness | SupervisorEnd, version: string, timeoutMs: number): string | null {
  if ("exitCode" in found) throw explainEnd(found);
  switch (found.kind) {
    case "ready":
      if (found.version === version) return found.instance;
      throw new Fault("misconfigured", "Another supervisor than ours answers in a new sandbox.");
    case "refused": {
      const reasons = found.failed.map(
        ({ property, detail, remedy }) => `${property}: ${detail}. To do: ${remedy}`,
      );
      throw new Fault("isolation_failed", `A sandbox can't isolate programs. ${reasons.join("; ")}`);
    }
    case "given_up": {
      const when = `within ${timeoutMs} ms, or before the creation was given up`;
      if (found.last === "starting") {
        throw new Fault("isolation_failed", `A sandbox did not prove its isolation ${when}.`);
      }
      const why = found.fault === null ? "" : ` Last: ${found.fault.message}`;
      throw new Fault("sandbox_unavailable", `A sandbox's port could not be reached ${when}.${why}`);
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

function attachWorker(
  client: E2bClient,
  { clock, random = Math.random }: WorkerFactoryOptions,
  worker: WorkerAddress,
  heard: { atMs: number },
): WorkerExecutor {
  return {
    async *execute(chunk, fencingToken, signal) {
      const connection = { ...connectionTo(client.options, worker), fencingToken };
      const decide = decideByControlPlane({
        client,
        sandboxId: worker.sandboxId,
        clock,
        random,
        deadlineAtMs: clock.nowMs() + chunk.deadlineMs,
        signal,
        lastHeardAtMs: () => heard.atMs,
        lookAgain: () => lookAgain(connection, clock, signal),
      });
      for await (const event of executeChunk(connection, chunk, signal, clock, decide)) {
        heard.atMs = clock.nowMs();
        yield event;
      }
    },
  };
}
