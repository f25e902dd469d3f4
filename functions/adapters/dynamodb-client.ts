/**
 * One DynamoDB client per process, tuned for short single-row calls.
 *
 * A call that is slower than a second or two will not get better by waiting: it is dropped and tried again, three times
 * in all. With keep-alive and as many sockets as a batch has calls at once, none waits for a connection; one that was idle
 * while the process was frozen is not used again, or each try could meet another dead one.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { keepConnections } from "./kept-connections.ts";

export interface DynamoDbOptions {
  /** Another place than AWS: an emulator, the embedded default. */
  readonly endpoint?: string;
  readonly region?: string;
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
  readonly connectionTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
  readonly maxSockets?: number;
}

export function createDynamoDbClient(options: DynamoDbOptions = {}): DynamoDBClient {
  const { endpoint, region, credentials } = options;
  const kept = keepConnections({ maxSockets: options.maxSockets ?? 50 }, () => Date.now());
  return new DynamoDBClient({
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(region === undefined ? {} : { region }),
    ...(credentials === undefined ? {} : { credentials }),
    maxAttempts: 3,
    cacheMiddleware: true, // else each call sorts its steps anew, which costs as much as the rest of it
    requestHandler: {
      connectionTimeout: options.connectionTimeoutMs ?? 1_000,
      requestTimeout: options.requestTimeoutMs ?? 2_500,
      throwOnRequestTimeout: true, // without it the handler only warns, and a silent server is waited for
      httpAgent: kept.http,
      httpsAgent: kept.https,
    },
  });
}
