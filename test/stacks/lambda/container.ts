/** One of a Lambda's processes, as AWS runs it: its own runtime interface client, our bundle, events over the Runtime API. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Bundle } from "./bundle.ts";
import { serveFunctionUrl } from "./function-url.ts";
import { type RuntimeReply, readAll, startRuntimeApi } from "./runtime-api.ts";
import { clientOf, type LambdaClient, type LambdaNode, type LambdaRuntimes } from "./runtimes.ts";

export interface ContainerOptions {
  readonly runtimes: LambdaRuntimes;
  readonly node: LambdaNode;
  /** Default: the one that AWS ships with that Node. */
  readonly client?: LambdaClient;
  readonly bundle: Bundle;
  readonly environment: Readonly<Record<string, string>>;
  /** What Lambda leaves to each invocation. Default: 15 minutes. */
  readonly timeoutMs?: number;
}

export interface Container {
  /** The function's URL. */
  readonly url: string;
  /** What the runtime said of a failure to start; null when it started. */
  readonly initError: string | null;
  /** An event that comes by no URL; resolves with what the function answered or threw. */
  invoke(event: unknown): Promise<{ readonly kind: RuntimeReply["kind"]; readonly text: string }>;
  /** Every line that the process wrote, on both streams. */
  said(): readonly string[];
  /** Stops the process as Lambda does between two invocations. The next event continues it. */
  freeze(): void;
  /** Sends a signal, and resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** Ends the process and everything that serves it. */
  close(): Promise<void>;
}

const standIn = fileURLToPath(new URL("./native-client.cjs", import.meta.url));

export async function startContainer(options: ContainerOptions): Promise<Container> {
  const { runtimes, node, client = clientOf[node], bundle, environment, timeoutMs = 900_000 } = options;
  const api = await startRuntimeApi();
  const child = spawn(runtimes.node(node), ["--require", standIn, ...runtimes.client(client)], {
    cwd: bundle.folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...platformVariables(bundle.folder, api.address, node), ...environment },
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  const exited = once(child, "exit").then(() => api.fail("the runtime has ended"));
  let isFrozen = false;
  const invoke = (requestId: string, event: unknown) => {
    const reply = api.invoke(requestId, event, timeoutMs);
    if (isFrozen) child.kill("SIGCONT");
    isFrozen = false;
    return reply;
  };
  const functionUrl = await serveFunctionUrl(invoke);
  const end = (signal: NodeJS.Signals) => {
    if (isFrozen) child.kill("SIGCONT");
    child.kill(signal);
    return exited;
  };
  const started = await Promise.race([api.started, exited.then(() => ({ initError: said }))]);
  return {
    url: functionUrl.url,
    initError: started.initError,
    async invoke(event) {
      const { kind, message } = await invoke(randomUUID(), event);
      return { kind, text: await readAll(message) };
    },
    said: () => said.split("\n").filter((line) => line !== ""),
    freeze() {
      isFrozen = child.kill("SIGSTOP");
    },
    end,
    async close() {
      await end("SIGKILL");
      functionUrl.close();
      api.close();
    },
  };
}

function platformVariables(folder: string, address: string, node: LambdaNode) {
  return {
    PATH: process.env.PATH ?? "",
    LANG: "en_US.UTF-8",
    TZ: ":UTC",
    AWS_LAMBDA_RUNTIME_API: address,
    LAMBDA_TASK_ROOT: folder,
    _HANDLER: "bundle.handler",
    AWS_EXECUTION_ENV: `AWS_Lambda_${node.replace("node", "nodejs")}.x`,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: "local",
    AWS_SECRET_ACCESS_KEY: "local",
    AWS_LAMBDA_FUNCTION_NAME: "local",
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: "1024",
    AWS_LAMBDA_FUNCTION_VERSION: "$LATEST",
    AWS_LAMBDA_LOG_GROUP_NAME: "/aws/lambda/local",
    AWS_LAMBDA_LOG_STREAM_NAME: "local",
  };
}
