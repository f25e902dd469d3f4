/**
 * The embedded table: dynalite in this process, over HTTP on loopback.
 *
 * In memory: what the pool knew goes with the process, as its sandboxes do. The product talks to it with the same
 * client as to AWS.
 */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import dynalite from "dynalite";

export interface LocalDynamoDb {
  readonly endpoint: string;
  close(): Promise<void>;
}

/** Credentials for an emulator, which checks their form and nothing else. */
export const localDynamoDbAccess = {
  region: "us-east-1",
  credentials: { accessKeyId: "local", secretAccessKey: "local" },
} as const;

/** Starts it on a loopback port; 0 takes a free one. Rejects when the port is taken. */
export async function startDynamoDb({ port }: { readonly port: number }): Promise<LocalDynamoDb> {
  const server = dynalite({ createTableMs: 0 });
  surviveCutRequests(server);
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  const address = server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${address.port}`,
    close: () =>
      new Promise<void>((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}

/**
 * dynalite throws when a client goes away in the middle of a request, which would end this whole process.
 *
 * Its own listener of `request` comes first and adds a listener of `error` that throws; this one, after it, replaces it.
 */
function surviveCutRequests(server: Server): void {
  server.on("request", (request) => {
    request.removeAllListeners("error");
    request.on("error", () => {});
  });
}
