import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  addressFrom,
  factoryFor,
  never,
  newOrder,
  optionsFor,
  startRoomyServer,
  sweep,
  type TestServer,
} from "./cloud.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startRoomyServer();
});
afterAll(() => server?.stop());

it("programs run on a worker that exists without E2B's client being loaded; a creation needs it and says so", async () => {
  const e2b = optionsFor(server);
  const order = newOrder();
  const created = addressFrom(await factoryFor(e2b).create(order, never));
  const script = fileURLToPath(new URL("./hot-path-process.ts", import.meta.url));
  const input = JSON.stringify({ e2b, worker: { ...order, ...created } });
  const { stdout } = await promisify(execFile)(process.execPath, ["--import", "tsx", script, input]);
  expect(JSON.parse(stdout)).toMatchObject({
    outputs: ["42\n", "8\n"],
    loaded: [],
    created: { kind: "refused", reason: "failed", fault: { code: "misconfigured" } },
    said: expect.stringContaining("e2b can't be loaded"),
  });
  // The same look, where the client was loaded.
  const seen = Object.keys(createRequire(import.meta.url).cache).filter((path) =>
    path.includes("/e2b/dist/"),
  );
  expect(seen).not.toEqual([]);
  await sweep(e2b, order.poolId);
});
