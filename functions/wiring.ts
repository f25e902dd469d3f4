/**
 * The product's parts put together: adapters made from settings, services given their adapters, the app over them.
 *
 * Every entry point goes through here, so that a laptop, a Lambda and a test run the same object graph. Nothing is
 * asked of E2B or the table before the first request needs it.
 */
import { randomBytes, randomUUID } from "node:crypto";
import type { Hono } from "hono";
import { createDynamoDbClient, type DynamoDbOptions } from "./adapters/dynamodb-client.ts";
import { type CountedTable, createDynamoDbTable } from "./adapters/dynamodb-table.ts";
import type { E2bOptions } from "./adapters/e2b-options.ts";
import { createE2bSandboxes } from "./adapters/e2b-sandboxes.ts";
import { createE2bWorkerFactory } from "./adapters/e2b-worker-factory.ts";
import { readSupervisorFiles } from "./adapters/supervisor-files.ts";
import { createApp } from "./api/app.ts";
import { hashApiKey } from "./api/authentication.ts";
import type { LogEvent } from "./api/log.ts";
import { cancelBatch } from "./pool/batches/cancel-batch.ts";
import { type WorkerRates, type WorkerShape, workersCostUsd } from "./pool/cost.ts";
import { rememberPoolId } from "./pool/identity.ts";
import {
  createLeaseSource,
  type LeaseSource,
  type PoolContext,
  type PoolEvent,
} from "./pool/lease-source.ts";
import { probePool } from "./pool/readiness.ts";
import { createRunService } from "./pool/runs/run-service.ts";
import { type Plan, poolSettings } from "./pool/settings.ts";
import type { SweepContext } from "./pool/sweep/sweep.ts";
import type { Clock } from "./rewards/ports.ts";
import { createRunGrader } from "./rewards/run-grading.ts";

/** What the supervisor keeps of a worker's memory for itself. */
const workerReserveMib = 128;

export interface ServiceSettings {
  /** Valid bearer keys; several while one is replaced. */
  readonly apiKeys: readonly string[];
  /** Whether the platform in front identifies callers by their signatures; then there are no keys. */
  readonly signedCallers?: boolean;
  readonly e2b: E2bOptions;
  readonly dynamoDb: DynamoDbOptions;
  readonly tableName: string;
  /** What the E2B plan allows. */
  readonly plan: Plan;
  /** What the template's sandboxes have. */
  readonly worker: WorkerShape;
  /** What they cost. Default: the provider's list prices. */
  readonly rates?: WorkerRates;
  /** Where the supervisor's files are, in a bundle that moved them. */
  readonly supervisorFolder?: string;
}

export interface ServiceDeps {
  readonly clock: Clock;
  readonly log: LogEvent;
  readonly reportPool: (event: PoolEvent) => void;
}

export interface Service {
  // biome-ignore lint/suspicious/noExplicitAny: an app may have any variables; who serves it uses none of them
  readonly app: Hono<any>;
  readonly leases: LeaseSource;
  readonly pool: PoolContext & SweepContext;
  readonly table: CountedTable;
  /**
   * Cancels all batches and creates nothing more, for a process that must end; resolves once nothing of the batches runs
   * and their workers are back in the pool.
   */
  stop(): Promise<void>;
  /** Aborted by `stop`. */
  readonly stopping: AbortSignal;
}

/** Throws a `misconfigured` fault, or a RangeError, when the settings can't work together. */
export function wireService(settings: ServiceSettings, deps: ServiceDeps): Service {
  const { clock } = deps;
  const supervisor = readSupervisorFiles(settings.supervisorFolder);
  const table = createDynamoDbTable(createDynamoDbClient(settings.dynamoDb), settings.tableName);
  const sandboxes = createE2bSandboxes(settings.e2b);
  const workers = createE2bWorkerFactory({
    e2b: settings.e2b,
    supervisor,
    memoryMib: settings.worker.memoryMib,
    clock,
  });
  const costUsd = (workerSeconds: number) => workersCostUsd(workerSeconds, settings.worker, settings.rates);
  const reportFault = (fault: unknown) => deps.reportPool({ kind: "fault", fault });
  const pool: PoolContext & SweepContext = {
    table,
    clock,
    sandboxes,
    settings: poolSettings(settings.plan, { supervisorVersion: supervisor.shortVersion }),
    workers,
    poolId: rememberPoolId(table, randomUUID),
    newId: () => randomBytes(6).toString("base64url"),
    random: Math.random,
  };
  const leases = createLeaseSource(pool, deps.reportPool);
  const grader = createRunGrader({ leases, pool, newId: randomUUID, costUsd, report: reportFault });
  const stopping = new AbortController();
  const app = createApp({
    apiKeyHashes: settings.apiKeys.map(hashApiKey),
    signedCallers: settings.signedCallers ?? false,
    admitBatch: grader.admitBatch,
    runs: createRunService(pool, { report: reportFault, signal: stopping.signal }),
    cancelBatch: (batchId) => cancelBatch({ ...pool, stopper: workers }, batchId),
    probeReadiness: () => probePool(pool, sandboxes),
    config: {
      maxMemoryMib: settings.worker.memoryMib - workerReserveMib,
      slots: pool.settings.slots,
      costUsd,
    },
    nowMs: clock.nowMs,
    log: deps.log,
  });
  const stop = () => {
    stopping.abort();
    return grader.stop();
  };
  return { app, leases, pool, table, stop, stopping: stopping.signal };
}
