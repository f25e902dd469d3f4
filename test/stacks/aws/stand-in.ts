/** AWS on loopback: moto's EC2, S3 and SSM in a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { toolsFolder } from "./tools.ts";

// About Node's future, once for each client.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

export interface AwsStandIn {
  readonly url: string;
  /** What a process needs to talk to it in the place of AWS. */
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

export async function startAws(): Promise<AwsStandIn> {
  const port = await findPort();
  const url = `http://127.0.0.1:${port}`;
  const server = spawn(join(toolsFolder, "moto_server"), ["-H", "127.0.0.1", "-p", String(port)], {
    stdio: "ignore",
  });
  const exited = once(server, "exit");
  await waitUntilUp(url, exited);
  return {
    url,
    environment: {
      AWS_ENDPOINT_URL: url,
      AWS_ACCESS_KEY_ID: "test",
      AWS_SECRET_ACCESS_KEY: "test",
      AWS_REGION: "us-east-1",
      AWS_DEFAULT_REGION: "us-east-1",
    },
    async close() {
      server.kill();
      await exited;
    },
  };
}

async function findPort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

async function waitUntilUp(url: string, exited: Promise<unknown>): Promise<void> {
  let over = false;
  void exited.then(() => {
    over = true;
  });
  for (let tries = 0; tries < 300 && !over; tries += 1) {
    const answer = await fetch(`${url}/moto-api/data.json`).catch(() => null);
    if (answer?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("moto did not start");
}
