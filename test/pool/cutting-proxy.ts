/** A proxy that passes requests on and then cuts chosen connections instead of answering. */
import { once } from "node:events";
import { createServer, request as sendRequest } from "node:http";
import type { AddressInfo } from "node:net";

export interface CuttingProxy {
  readonly endpoint: string;
  /** Called with the operation (`UpdateItem`) once the server has answered; true loses that answer. */
  cuts: (operation: string) => boolean;
  /** Operations that reached the server, in order. */
  readonly passed: string[];
  close(): Promise<void>;
}

export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const server = createServer((request, response) => {
    const operation = String(request.headers["x-amz-target"]).split(".").at(-1) ?? "";
    const options = { method: request.method, headers: request.headers };
    const onward = sendRequest(new URL(request.url ?? "/", target), options, (answer) => {
      const body: Buffer[] = [];
      answer.on("data", (part: Buffer) => body.push(part));
      answer.on("end", () => {
        proxy.passed.push(operation);
        if (proxy.cuts(operation)) return request.socket.destroy();
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        response.end(Buffer.concat(body));
      });
    });
    request.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const proxy: CuttingProxy = {
    endpoint: `http://127.0.0.1:${port}`,
    cuts: () => false,
    passed: [],
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
  return proxy;
}
