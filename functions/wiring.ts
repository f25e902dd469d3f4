/**
 * The product's parts put together: adapters made from settings, services given their adapters, the app over them.
 *
 * Every entry point goes through here, so that a laptop, a Lambda and a test run the same object graph. Nothing is
 * asked of E2B or the table before the first request needs it.
 */
import { randomUUID } from "node:crypto";
import type { Hono } from "hono";
import type { CountedTable } from "./adapters/dynamodb-table.ts";
import { createApp } from "./api/app.ts";
import { hashApiKey } from "./api/authentication.ts";
import type { LogEvent } from "./api/log.ts";
import { cancelBatch } from "./pool/batches/cancel-batch.ts";
import { type WorkerRates, workerReserveMib, workersCostUsd } from "./pool/cost.ts";
import { createLeaseSource, type LeaseSource, type PoolEvent } from "./pool/lease-source.ts";
import { probePool } from "./pool/readiness.ts";
import { createRunService } from "./pool/runs/run-service.ts";
import { hostBatches, type RequestHost } from "./rewards/hosted-batches.ts";
import { createRunGrader } from "./rewards/run-grading.ts";
import { type PoolDeps, type PoolWiring, type WiredPool, wirePool } from "./wiring-pool.ts";

export interface ServiceSettings extends PoolWiring {
  /** Valid bearer keys; several while one is replaced. */
  readonly apiKeys: readonly string[];
  /** Whether the platform in front identifies callers by their signatures; then there are no keys. */
  readonly signedCallers?: boolean;
  /** What workers cost. Default: the provider's list prices. */
  readonly rates?: WorkerRates;
}

export interface ServiceDeps extends PoolDeps {
  readonly log: LogEvent;
  readonly reportPool: (event: PoolEvent) => void;
  /** Where a platform surrounds each request. */
  readonly host?: RequestHost;
}

export interface Service extends Pick<WiredPool, "pool" | "creationsSettled"> {
  // biome-ignore lint/suspicious/noExplicitAny: an app may have any variables; who serves it uses none of them
  readonly app: Hono<any>;
  readonly leases: LeaseSource;
  readonly table: CountedTable;
  /**
   * Ends all batches as `stopping` and creates nothing more, for a process that must end; resolves once nothing of the
   * batches runs and their workers are back in the pool.
   */
  stop(): Promise<void>;
  /** Aborted by `stop`. */
  readonly stopping: AbortSignal;
}

/** Throws a `misconfigured` fault when the settings can't work together. */
export function wireService(settings: ServiceSettings, deps: ServiceDeps): Service {
  const { pool, table, stopper, creationsSettled } = wirePool(settings, deps);
  const costUsd = (workerSeconds: number) => workersCostUsd(workerSeconds, settings.worker, settings.rates);
  const report = (fault: unknown) => deps.reportPool({ kind: "fault", fault });
  const leases = createLeaseSource(pool, deps.reportPool);
  const grader = createRunGrader({ leases, pool, newId: randomUUID, costUsd, report });
  const stopping = new AbortController();
  const app = createApp({
    apiKeyHashes: settings.apiKeys.map(hashApiKey),
    signedCallers: settings.signedCallers ?? false,
    admitBatch:
      deps.host === undefined ? grader.admitBatch : hostBatches(grader.admitBatch, deps.host, deps.clock),
    runs: createRunService(pool, { report, signal: stopping.signal }),
    cancelBatch: (batchId) => cancelBatch({ ...pool, stopper }, batchId),
    probeReadiness: () => probePool(pool, pool.sandboxes, leases.creationFault),
    config: {
      maxMemoryMib: settings.worker.memoryMib - workerReserveMib,
      slots: pool.settings.slots,
      costUsd,
    },
    clock: deps.clock,
    log: deps.log,
  });
  const stop = () => {
    stopping.abort();
    return grader.stop();
  };
  return { app, leases, pool, table, creationsSettled, stop, stopping: stopping.signal };
}
