/** The product in this process, with a proxy that fails by rules between it and each service that it uses. */
import type { E2bOptions } from "../../functions/adapters/e2b-options.ts";
import { type LocalDynamoDb, startDynamoDb } from "../../functions/local/dynamodb.ts";
import { type E2bServer, startE2bServer } from "../../functions/local/e2b/server.ts";
import { type LocalStack, type LocalStackOptions, startLocalStack } from "../../functions/local/stack.ts";
import { type FaultProxy, type FaultProxyOptions, startFaultProxy } from "./proxy/fault-proxy.ts";

const apiKey = "e2b_local";

export interface ProxiedStackOptions
  extends Partial<
      Pick<
        LocalStackOptions,
        "plan" | "slots" | "cron" | "apiKey" | "poolTimes" | "dynamoDb" | "worker" | "clock" | "random"
      >
    >,
    Pick<FaultProxyOptions, "seed" | "keep" | "onAnswer"> {
  /** Such as shorter timeouts; the addresses and the key are given already. */
  readonly e2b?: Partial<E2bOptions>;
  /** Creations that the E2B server allows in a second. Default: 100. */
  readonly createsPerSecond?: number;
  readonly log?: (line: string) => void;
}

export interface ProxiedStack {
  readonly stack: LocalStack;
  readonly proxy: FaultProxy;
  /** The server behind the proxy, and how to reach it without. */
  readonly e2bServer: E2bServer;
  readonly direct: E2bOptions;
  readonly dynamoDb: LocalDynamoDb;
  /** Removes all rules, empties the pool and ends everything; returns the sandboxes that the server still had. */
  close(): Promise<number>;
}

/** Starts the parts; one worker is created while nothing fails yet. `cron` is off unless it is asked for. */
export async function startProxiedStack(options: ProxiedStackOptions = {}): Promise<ProxiedStack> {
  const { createsPerSecond = 100, log = () => {}, slots = 20, cron = false } = options;
  const e2bServer = await startE2bServer({
    apiKey,
    plan: { createsPerSecond, concurrentSandboxes: slots },
    log,
  });
  const dynamoDb = await startDynamoDb({ port: 0 });
  const { apiUrl, sandboxUrl } = e2bServer;
  const proxy = await startFaultProxy({
    control: apiUrl,
    sandbox: sandboxUrl,
    table: dynamoDb.endpoint,
    ...pick(options, "seed", "keep", "onAnswer"),
  });
  const stack = await startLocalStack({
    port: 0,
    ...pick(options, "plan", "apiKey", "poolTimes", "dynamoDb", "worker", "clock", "random"),
    slots,
    cron,
    e2b: { ...options.e2b, apiKey, apiUrl: proxy.controlUrl, sandboxUrl: proxy.sandboxUrl },
    dynamoDbEndpoint: proxy.tableUrl,
  });
  return {
    stack,
    proxy,
    e2bServer,
    direct: { apiKey, apiUrl, sandboxUrl },
    dynamoDb,
    async close() {
      proxy.clear();
      await stack.emptyPool();
      await stack.close();
      await proxy.close();
      await dynamoDb.close();
      const { running, paused } = e2bServer.sandboxCounts();
      await e2bServer.close();
      return running + paused;
    },
  };
}

function pick<Value, Key extends keyof Value>(from: Value, ...keys: Key[]): Pick<Value, Key> {
  return Object.fromEntries(
    keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]]),
  ) as Pick<Value, Key>;
}
