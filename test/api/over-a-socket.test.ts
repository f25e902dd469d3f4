import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import { type ServerType, serve } from "@hono/node-server";
import { afterEach, describe, expect, it } from "vitest";
import { obey } from "../rewards/scripted-workers.ts";
import { createTestApp, jsonHeaders, rightRequest, type TestApp, type TestAppOptions } from "./test-app.ts";

const servers: ServerType[] = [];

afterEach(async () => {
  for (const server of servers.splice(0)) {
    (server as http.Server).closeAllConnections();
    server.close();
    await once(server, "close");
  }
});

async function listen(options: TestAppOptions = {}): Promise<TestApp & { url: string; port: number }> {
  const testApp = createTestApp(options);
  const port = await new Promise<number>((resolve) => {
    const server = serve({ fetch: testApp.app.fetch, port: 0, hostname: "127.0.0.1" }, (info) =>
      resolve(info.port),
    );
    servers.push(server);
  });
  return { ...testApp, url: `http://127.0.0.1:${port}`, port };
}

describe("over a real connection", () => {
  it("answers as it does in process", async () => {
    const { url } = await listen();
    const answer = await fetch(`${url}/v1/rewards`, {
      method: "POST",
      headers: jsonHeaders,
      body: JSON.stringify(rightRequest()),
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    expect(await answer.json()).toMatchObject({ rewards: [1] });
  });

  it("refuses an announced body that is too large before it is sent", async () => {
    const { port } = await listen();
    const socket = net.connect(port, "127.0.0.1");
    const headers = { host: "x", ...jsonHeaders, "content-length": String(7 * 1024 * 1024) };
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`POST /v1/rewards HTTP/1.1\r\n${head.join("")}\r\n`);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });

  it("stops reading a body of unknown length at the cap", async () => {
    const { url } = await listen();
    const request = http.request(`${url}/v1/rewards`, {
      method: "POST",
      headers: { ...jsonHeaders, "transfer-encoding": "chunked" },
    });
    request.on("error", () => {});
    const answered = once(request, "response") as Promise<[http.IncomingMessage]>;
    const megabyte = Buffer.alloc(1024 * 1024, 0x20);
    let sent = 0;
    const send = () => {
      if (request.destroyed || sent >= 64) return;
      sent += 1;
      request.write(megabyte, () => setImmediate(send));
    };
    send();
    const [answer] = await answered;
    expect(answer.statusCode).toBe(413);
    request.destroy();
  });

  it.each(["application/json", "application/x-ndjson"])(
    "stops the batch when the connection is closed, with %s",
    async (accept) => {
      const { url, workers, logged } = await listen({ script: () => ({ kind: "hang" }) });
      const request = http.request(`${url}/v1/rewards`, {
        method: "POST",
        headers: { ...jsonHeaders, accept },
      });
      request.on("error", () => {});
      request.end(JSON.stringify(rightRequest()));
      await expect.poll(() => workers.leases[0]?.executing).toBe(1);
      request.destroy();
      await expect.poll(() => workers.leases[0]?.released).toEqual(["healthy"]);
      expect(workers.leases[0]).toMatchObject({ aborted: true, executing: 0 });
      expect(logged.filter((event) => event.level === "error")).toEqual([]);
    },
  );

  it("sends a stream's lines as they are written", async () => {
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const { url } = await listen({
      script: async (turn) => {
        await gate;
        return obey(turn);
      },
    });
    const answer = await fetch(`${url}/v1/rewards`, {
      method: "POST",
      headers: { ...jsonHeaders, accept: "application/x-ndjson" },
      body: JSON.stringify(rightRequest()),
    });
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    const first = new TextDecoder().decode((await reader.read()).value);
    expect(JSON.parse(first)).toEqual({ type: "progress", done: 0, total: 1 });
    open();
    let text = "";
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      text += new TextDecoder().decode(piece.value);
    }
    const kinds = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line).type);
    expect(kinds).toEqual(["result", "summary"]);
  });
});
