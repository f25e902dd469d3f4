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
import { rememberPoolId } from "./pool/identity.ts";
import {
  createLeaseSource,
  type LeaseSource,
  type PoolContext,
  type PoolEvent,
} from "./pool/lease-source.ts";
import type { Sandboxes } from "./pool/ports.ts";
import { probePool } from "./pool/readiness.ts";
import { type Plan, poolSettings } from "./pool/settings.ts";
import type { GradeBatch } from "./rewards/batch.ts";
import { createBatchGrader } from "./rewards/batch-grader.ts";
import type { Clock } from "./rewards/ports.ts";

/** What the supervisor keeps of a worker's memory for itself. */
const workerReserveMib = 128;
/** The run that a batch counts for which names none. */
const defaultRun = "default";

export interface ServiceSettings {
  /** Valid bearer keys; several while one is replaced. */
  readonly apiKeys: readonly string[];
  readonly e2b: E2bOptions;
  readonly dynamoDb: DynamoDbOptions;
  readonly tableName: string;
  /** What the E2B plan allows. */
  readonly plan: Plan;
  /** Memory of the template's sandboxes. */
  readonly workerMemoryMib: number;
  /** Workers that one run may hold at once. */
  readonly workersPerRun: number;
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
  readonly pool: PoolContext;
  readonly sandboxes: Sandboxes;
  readonly table: CountedTable;
}

/** Throws a `misconfigured` fault, or a RangeError, when the settings can't work together. */
export function wireService(settings: ServiceSettings, deps: ServiceDeps): Service {
  const { clock } = deps;
  const supervisor = readSupervisorFiles(settings.supervisorFolder);
  const table = createDynamoDbTable(createDynamoDbClient(settings.dynamoDb), settings.tableName);
  const sandboxes = createE2bSandboxes(settings.e2b);
  const pool: PoolContext = {
    table,
    clock,
    sandboxes,
    settings: poolSettings(settings.plan, { supervisorVersion: supervisor.shortVersion }),
    workers: createE2bWorkerFactory({
      e2b: settings.e2b,
      supervisor,
      memoryMib: settings.workerMemoryMib,
      clock,
    }),
    poolId: rememberPoolId(table, randomUUID),
    newId: () => randomBytes(6).toString("base64url"),
    random: Math.random,
  };
  const leases = createLeaseSource(pool, deps.reportPool);
  const app = createApp({
    apiKeyHashes: settings.apiKeys.map(hashApiKey),
    gradeBatch: gradeWith(leases, settings.workersPerRun, clock),
    probeReadiness: () => probePool(pool, sandboxes),
    config: { maxMemoryMib: settings.workerMemoryMib - workerReserveMib },
    log: deps.log,
  });
  return { app, leases, pool, sandboxes, table };
}

/** Each batch has a source of workers of its own, since leases are held in a batch's name. */
function gradeWith(leases: LeaseSource, maxWorkers: number, clock: Clock): GradeBatch {
  return (batch, hooks) => {
    const workers = leases.forBatch({ runId: defaultRun, batchId: randomUUID(), runWorkers: maxWorkers });
    const gradeBatch = createBatchGrader({ workers, clock, newId: randomUUID, config: { maxWorkers } });
    return gradeBatch(batch, hooks);
  };
}
