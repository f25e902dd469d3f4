/** The whole product on this machine: endpoint and workers, in one process and its children. */
import { randomBytes, randomUUID } from "node:crypto";
import { systemClock } from "../adapters/system-clock.ts";
import { createApp } from "../api/app.ts";
import { hashApiKey } from "../api/authentication.ts";
import type { ReadinessReport } from "../api/health-routes.ts";
import type { LogEvent } from "../api/log.ts";
import { createBatchGrader } from "../rewards/batch-grader.ts";
import { listHostCpus } from "./host-cpus.ts";
import { serveOnLoopback } from "./http-server.ts";
import { type LoopbackWorkers, startLoopbackWorkers } from "./loopback-workers.ts";

/** What E2B's default template has, so that a task which fits here fits there. */
const workerMemoryMib = 512;
/** Kept for the supervisor itself. */
const workerReserveMib = 128;
const defaultWorkers = 2;

export interface LocalStackOptions {
  /** 0 takes a free port. */
  readonly port: number;
  /** Default: 2, or fewer on a machine with one CPU. */
  readonly workers?: number;
  /** Default: a random one. */
  readonly apiKey?: string;
  /** Default: `python3`. */
  readonly python?: string;
}

export interface LocalStack {
  readonly url: string;
  readonly apiKey: string;
  readonly workers: LoopbackWorkers;
  /** Ends everything that was started; resolves when it is gone. */
  close(): Promise<void>;
}

/** Starts the stack. Throws a `Fault` that says what to do when this host can't isolate programs. */
export async function startLocalStack(options: LocalStackOptions): Promise<LocalStack> {
  const count = options.workers ?? Math.min(defaultWorkers, listHostCpus().length);
  const workers = await startLoopbackWorkers({
    count,
    python: options.python ?? "python3",
    memoryMib: workerMemoryMib,
    clock: systemClock,
    logError: (message, error) => console.error(message, error),
  });
  const apiKey = options.apiKey ?? randomBytes(24).toString("base64url");
  const app = createApp({
    apiKeyHashes: [hashApiKey(apiKey)],
    gradeBatch: createBatchGrader({
      workers,
      clock: systemClock,
      newId: randomUUID,
      config: { maxWorkers: count },
    }),
    probeReadiness: async () => describeReadiness(workers, count),
    config: { maxMemoryMib: workerMemoryMib - workerReserveMib },
    log: logToStandardError,
  });
  try {
    const server = await serveOnLoopback(app, options.port);
    return {
      url: server.url,
      apiKey,
      workers,
      async close() {
        await server.close();
        await workers.stop();
      },
    };
  } catch (error) {
    await workers.stop();
    throw error;
  }
}

function describeReadiness(workers: LoopbackWorkers, slots: number): ReadinessReport {
  const { ready, leased, starting } = workers.counts();
  return { isReady: ready + leased > 0, checks: { pool: { slots, ready, leased, creating: starting } } };
}

const logToStandardError: LogEvent = ({ cause, ...event }) => {
  console.error(JSON.stringify(event), cause ?? "");
};
