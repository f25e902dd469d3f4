/** A machine's metadata, as EC2 serves it: nothing without a token that was asked for. */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface Metadata {
  readonly url: string;
  /** By path under `latest/meta-data`; a path that is not there is 404, as for tags and notices that aren't. */
  readonly values: Map<string, string>;
  close(): Promise<void>;
}

export async function startMetadata(values: Readonly<Record<string, string>>): Promise<Metadata> {
  const known = new Map(Object.entries(values));
  const tokens = new Set<string>();
  const server = createServer(({ method, url = "", headers }, response) => {
    if (method === "PUT" && url === "/latest/api/token") {
      if (headers["x-aws-ec2-metadata-token-ttl-seconds"] === undefined) return response.writeHead(400).end();
      const token = randomUUID();
      tokens.add(token);
      return response.end(token);
    }
    if (!tokens.has(String(headers["x-aws-ec2-metadata-token"]))) return response.writeHead(401).end();
    const value = known.get(url.replace("/latest/meta-data/", ""));
    return value === undefined ? response.writeHead(404).end() : response.end(value);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    values: known,
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
