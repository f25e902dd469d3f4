/** A proxy that stands between the product and a service, and sees every request and answer. */
import { once } from "node:events";
import http from "node:http";
import type { AddressInfo } from "node:net";

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
  status: number;
  /** What came back so far. */
  answer: string;
}

export interface WatchingProxy {
  readonly url: string;
  readonly seen: readonly SeenRequest[];
  close(): Promise<void>;
}

/** `onAnswer` is called with every piece of an answer that passes. */
export async function startWatchingProxy(
  target: string,
  onAnswer: (request: SeenRequest) => void = () => {},
): Promise<WatchingProxy> {
  const seen: SeenRequest[] = [];
  const agent = new http.Agent({ keepAlive: true });
  const server = http.createServer(async (incoming, outgoing) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece);
    const body = Buffer.concat(pieces);
    const { method = "GET", url = "/", headers } = incoming;
    const request: SeenRequest = { method, path: url, headers, body: body.toString(), status: 0, answer: "" };
    seen.push(request);
    const { host: _, ...forwarded } = headers;
    const asked = http.request(new URL(url, target), { method, headers: forwarded, agent }, (answer) => {
      request.status = answer.statusCode ?? 0;
      outgoing.writeHead(request.status, answer.headers);
      answer.on("data", (piece: Buffer) => {
        request.answer += piece.toString();
        outgoing.write(piece);
        onAnswer(request);
      });
      answer.on("end", () => outgoing.end());
      answer.on("error", () => outgoing.destroy());
    });
    asked.on("error", () => outgoing.destroy());
    outgoing.on("close", () => asked.destroy());
    asked.end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async close() {
      agent.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
