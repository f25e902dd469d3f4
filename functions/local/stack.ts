/**
 * The whole product on this machine: the endpoint, and stand-ins for the two services it needs.
 *
 * The E2B-compatible server and the table are started here unless the environment names others; the product in between
 * is the one that is deployed.
 */
import { randomBytes } from "node:crypto";
import { createDynamoDbClient, type DynamoDbOptions } from "../adapters/dynamodb-client.ts";
import { ensureTable } from "../adapters/dynamodb-setup.ts";
import type { CountedTable } from "../adapters/dynamodb-table.ts";
import type { E2bOptions } from "../adapters/e2b-options.ts";
import { systemClock } from "../adapters/system-clock.ts";
import { createLineLog } from "../log-lines.ts";
import { defaultShape, type WorkerShape } from "../pool/cost.ts";
import { defaultRunId, defaultRunWorkers } from "../pool/runs/run-row.ts";
import { type PoolSettings, plans } from "../pool/settings.ts";
import { Fault } from "../rewards/faults.ts";
import type { Clock } from "../rewards/ports.ts";
import { type Service, type ServiceSettings, wireService } from "../wiring.ts";
import { localDynamoDbAccess, startDynamoDb } from "./dynamodb.ts";
import { type E2bServer, startE2bServer } from "./e2b/server.ts";
import { emptyPool, endPool } from "./emptying.ts";
import { listHostCpus } from "./host-cpus.ts";
import { type HttpServer, listenOnLoopback } from "./http-server.ts";
import { addSweepRoute, sweepEveryMinute } from "./sweeping.ts";

// The SDK's advice concerns deployments, which run on newer Nodes; here it would only hide the lines that matter.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

const localE2bKey = "e2b_local";
const tableName = "code-rewards-local";
/** Of the default run. */
const workersPerRun = defaultRunWorkers;
const warmUpMs = 60_000;

export interface LocalStackOptions {
  /** 0 takes a free one. */
  readonly port: number;
  /** Which of E2B's plans to keep to. Default: hobby. */
  readonly plan?: keyof typeof plans;
  /** Sandboxes at once; default: what the plan allows. */
  readonly slots?: number;
  /** Default: a random one. */
  readonly apiKey?: string;
  /** An E2B to use instead of the embedded server. */
  readonly e2b?: E2bOptions;
  /** A DynamoDB to use instead of the embedded table. */
  readonly dynamoDbEndpoint?: string;
  /** How that one is reached, where it differs from the default. */
  readonly dynamoDb?: Pick<DynamoDbOptions, "connectionTimeoutMs" | "requestTimeoutMs">;
  /** What the template's sandboxes have. Default: what E2B's own has. */
  readonly worker?: WorkerShape;
  /** Changes of the pool's times. */
  readonly poolTimes?: Partial<PoolSettings>;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Numbers in [0, 1). Default: `Math.random`. */
  readonly random?: () => number;
  /** Whether the pool is swept every minute, as the deployed cron does. Default: true. */
  readonly cron?: boolean;
  /** Gives up the start: what was started by then is ended, and the start rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface LocalStack {
  readonly url: string;
  readonly apiKey: string;
  readonly e2b: E2bOptions;
  readonly dynamoDbEndpoint: string;
  readonly tableName: string;
  readonly table: CountedTable;
  /** The embedded server; null when another E2B is used. */
  readonly e2bServer: E2bServer | null;
  /** Kills the pool's sandboxes; returns the ids that E2B's own list still shows afterwards. */
  emptyPool(): Promise<readonly string[]>;
  /**
   * Ends everything that was started: requests are answered, then the sandboxes are ended. Said again, it is the same
   * end. Rejects with what could not be ended once all else is.
   */
  close(): Promise<void>;
}

/** Starts the stack. Throws, saying what to do, when this host can't isolate programs. */
export async function startLocalStack(options: LocalStackOptions): Promise<LocalStack> {
  const { signal = new AbortController().signal } = options;
  const closers: (() => Promise<void>)[] = [keepProcessAlive()];
  let closing: Promise<void> | null = null;
  const close = () => {
    closing ??= closeAll(closers);
    return closing;
  };
  try {
    return { ...(await startParts({ ...options, signal }, closers)), close };
  } catch (error) {
    const problem = await close().then(
      () => null,
      (left: unknown) => left,
    );
    // Of a start that was given up only what is left behind is worth a word.
    throw signal.aborted ? (problem ?? signal.reason) : error;
  }
}

/** Ends the last part first, and every one, whatever becomes of the others. Throws the first problem. */
async function closeAll(closers: readonly (() => Promise<void>)[]): Promise<void> {
  const problems: unknown[] = [];
  for (const closeOne of closers.toReversed()) {
    await closeOne().catch((problem: unknown) => problems.push(problem));
  }
  if (problems.length > 0) throw problems[0];
}

/** A pause keeps no process alive, and before there is a server nothing else may: the start would end in the middle. */
function keepProcessAlive(): () => Promise<void> {
  const timer = setInterval(() => {}, 60_000);
  return async () => clearInterval(timer);
}

type StartOptions = LocalStackOptions & { readonly signal: AbortSignal };

async function startParts(
  options: StartOptions,
  closers: (() => Promise<void>)[],
): Promise<Omit<LocalStack, "close">> {
  const { signal } = options;
  // First of all: a port that is taken is told before anything else is started.
  const server = await listenOnLoopback(options.port);
  closers.push(server.close);
  const e2bServer = options.e2b ? null : await startEmbeddedE2b(options);
  if (e2bServer) closers.push(e2bServer.close);
  const e2b = options.e2b ?? embeddedE2bOptions(e2bServer);
  const dynamoDb = options.dynamoDbEndpoint ? null : await startDynamoDb({ port: 0 });
  if (dynamoDb) closers.push(dynamoDb.close);
  const dynamoDbOptions = {
    ...localDynamoDbAccess,
    ...options.dynamoDb,
    endpoint: options.dynamoDbEndpoint ?? dynamoDb?.endpoint ?? "",
  };
  signal.throwIfAborted();
  await ensureTable(createDynamoDbClient(dynamoDbOptions), tableName, systemClock);
  const apiKey = options.apiKey ?? randomBytes(24).toString("base64url");
  const lines = createLineLog(console.error);
  const service = wireLocalService(options, { apiKey, e2b, dynamoDb: dynamoDbOptions }, lines);
  // A pool whose table ends with this process is nobody else's: its sandboxes must not outlive it.
  if (dynamoDb && !e2bServer) closers.push(() => endPool(service));
  await warmUp(service, signal, (fault) => {
    if (e2bServer) throw fault;
    lines.reportPool({ kind: "fault", fault });
  });
  signal.throwIfAborted();
  if (options.cron ?? true) closers.push(sweepEveryMinute(service));
  server.serve(addSweepRoute(service, apiKey));
  closers.push(() => stopServing(server, service));
  return {
    url: server.url,
    apiKey,
    e2b,
    dynamoDbEndpoint: dynamoDbOptions.endpoint,
    tableName,
    table: service.table,
    e2bServer,
    emptyPool: () => emptyPool(service),
  };
}

function wireLocalService(
  options: LocalStackOptions,
  { apiKey, e2b, dynamoDb }: Pick<ServiceSettings, "e2b" | "dynamoDb"> & { readonly apiKey: string },
  lines: ReturnType<typeof createLineLog>,
): Service {
  return wireService(
    {
      apiKeys: [apiKey],
      e2b,
      dynamoDb,
      tableName,
      plan: { ...plans[options.plan ?? "hobby"], ...(options.slots && { slots: options.slots }) },
      // What E2B's default template has, so that a task which fits here fits there.
      worker: options.worker ?? defaultShape,
      ...(options.poolTimes && { poolTimes: options.poolTimes }),
    },
    {
      clock: options.clock ?? systemClock,
      ...(options.random && { random: options.random }),
      ...lines,
    },
  );
}

/** Batches end at once and say so to their callers; nothing that the service was asked to do is under way then. */
async function stopServing(server: HttpServer, service: Service): Promise<void> {
  server.refuse();
  await service.stop();
  await server.close();
}

function startEmbeddedE2b(options: LocalStackOptions): Promise<E2bServer> {
  const basis = options.plan ?? "hobby";
  return startE2bServer({
    apiKey: localE2bKey,
    plan: options.slots === undefined ? basis : { basis, concurrentSandboxes: options.slots },
    // The workers of one run share the machine's cores, so that together they don't promise more than there are.
    cpuCount: Math.max(1, Math.floor(listHostCpus().length / workersPerRun)),
    log: (line) => console.error(line),
  });
}

function embeddedE2bOptions(server: E2bServer | null): E2bOptions {
  if (server === null) throw new Error("there is no E2B");
  return { apiKey: localE2bKey, apiUrl: server.apiUrl, sandboxUrl: server.sandboxUrl };
}

/**
 * One worker is created before anybody asks, so that a host which can't isolate is found out at the start. Where E2B is
 * another's, the service starts all the same: it tells its callers what is wrong, and goes on when that is over.
 */
async function warmUp(
  { leases, pool: { clock } }: Service,
  signal: AbortSignal,
  onFault: (fault: Fault) => void,
): Promise<void> {
  const source = leases.forBatch({ runId: defaultRunId, batchId: "warm-up" });
  const deadlineAtMs = clock.nowMs() + warmUpMs;
  try {
    const lease = await source.acquire({ deadlineAtMs, signal });
    await lease?.release("healthy");
    signal.throwIfAborted();
    if (lease === null) throw new Fault("no_capacity", `No worker could be created within ${warmUpMs} ms.`);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    onFault(error);
  }
}
