import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  AuthenticationError,
  FileNotFoundError,
  InvalidArgumentError,
  RateLimitError,
  Sandbox,
  SandboxError,
  SandboxNotFoundError,
  ServiceBusyError,
  TimeoutError,
} from "e2b";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

// What the client makes of a status alone. We decide by these classes, so a change of theirs must show here.
// biome-ignore format: a table
const TABLE = [
  // status, REST API,             commands.run,         files.write
  [400, SandboxError,         SandboxError,         InvalidArgumentError],
  [401, AuthenticationError,  AuthenticationError,  AuthenticationError],
  [403, SandboxError,         SandboxError,         SandboxError],
  [404, SandboxNotFoundError, SandboxError,         FileNotFoundError],
  [409, SandboxError,         SandboxError,         SandboxError],
  [429, RateLimitError,       SandboxNotFoundError, RateLimitError],
  [500, SandboxError,         SandboxError,         SandboxError],
  [502, SandboxError,         SandboxNotFoundError, TimeoutError],
  [503, ServiceBusyError,     SandboxNotFoundError, SandboxError],
  [504, SandboxError,         SandboxNotFoundError, SandboxError],
] as const;

let server: Server;
let url = "";
let status = 0;

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify({ code: status, message: "told by a test" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

describe.each(TABLE)("status %i", (code, ofApi, ofRun, ofWrite) => {
  const target = () => ({ apiKey: "e2b_test", apiUrl: url, sandboxUrl: url });
  const attach = () =>
    new Sandbox({ ...target(), sandboxId: "iexample", envdVersion: "0.6.13", envdAccessToken: "token" });
  const classOf = (call: Promise<unknown>) =>
    call.then(
      () => "no error",
      (error) => error.constructor,
    );

  it.each([
    ["getInfo", () => Sandbox.getInfo("iexample", target()), ofApi],
    ["commands.run", () => attach().commands.run("true"), ofRun],
    ["files.write", () => attach().files.write("/tmp/x", "x"), ofWrite],
  ] as const)("%s", async (_name, call, expected) => {
    status = code;
    expect(await classOf(call())).toBe(expected);
  });
});
