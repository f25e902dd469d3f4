/** The pool's parts put together: what the sweep needs alone, and the endpoint among other things. */
import { randomBytes, randomUUID } from "node:crypto";
import { createDynamoDbClient, type DynamoDbOptions } from "./adapters/dynamodb-client.ts";
import { type CountedTable, createDynamoDbTable } from "./adapters/dynamodb-table.ts";
import type { E2bOptions } from "./adapters/e2b-options.ts";
import { createE2bSandboxes } from "./adapters/e2b-sandboxes.ts";
import { createE2bWorkerFactory } from "./adapters/e2b-worker-factory.ts";
import { readSupervisorFiles } from "./adapters/supervisor-files.ts";
import type { WorkerShape } from "./pool/cost.ts";
import { namePool } from "./pool/identity.ts";
import type { PoolContext } from "./pool/lease-source.ts";
import type { WorkerStopper } from "./pool/ports.ts";
import { type Plan, type PoolSettings, poolSettings } from "./pool/settings.ts";
import type { SweepContext } from "./pool/sweep/sweep.ts";
import { watchCreations } from "./pool/watched-creations.ts";
import { Fault } from "./rewards/faults.ts";
import type { Clock } from "./rewards/ports.ts";

export interface PoolWiring {
  readonly e2b: E2bOptions;
  readonly dynamoDb: DynamoDbOptions;
  readonly tableName: string;
  /** What the E2B plan allows. */
  readonly plan: Plan;
  /** What the template's sandboxes have. */
  readonly worker: WorkerShape;
  /** Where the supervisor's files are, in a bundle that moved them. */
  readonly supervisorFolder?: string;
  /** Changes of the pool's times. */
  readonly poolTimes?: Partial<PoolSettings>;
}

export interface PoolDeps {
  readonly clock: Clock;
  /** Numbers in [0, 1). Default: `Math.random`. */
  readonly random?: () => number;
}

export interface WiredPool {
  readonly pool: PoolContext & SweepContext;
  readonly table: CountedTable;
  readonly stopper: WorkerStopper;
  /** Resolves, with how many may have made a sandbox, once no creation of this process is under way. */
  creationsSettled(): Promise<number>;
}

/** Asks nothing of E2B or the table. Throws a `misconfigured` fault when the settings can't work together. */
export function wirePool(settings: PoolWiring, { clock, random = Math.random }: PoolDeps): WiredPool {
  const supervisor = readSupervisorFiles(settings.supervisorFolder);
  const { table, poolId } = namePool(
    createDynamoDbTable(createDynamoDbClient(settings.dynamoDb), settings.tableName),
    randomUUID,
  );
  const { memoryMib } = settings.worker;
  const factory = createE2bWorkerFactory({ e2b: settings.e2b, supervisor, memoryMib, clock, random });
  const creations = watchCreations(factory);
  const pool: PoolContext & SweepContext = {
    table,
    clock,
    sandboxes: createE2bSandboxes(settings.e2b),
    settings: settle(settings, supervisor.shortVersion),
    workers: creations.workers,
    poolId,
    newId: () => randomBytes(6).toString("base64url"),
    random,
  };
  return { pool, table, stopper: factory, creationsSettled: creations.settled };
}

function settle({ plan, poolTimes }: PoolWiring, supervisorVersion: string): PoolSettings {
  try {
    return poolSettings(plan, { ...poolTimes, supervisorVersion });
  } catch (error) {
    if (error instanceof RangeError) throw new Fault("misconfigured", error.message, { cause: error });
    throw error;
  }
}
