/** The product as a process of its own, and in this one the services that it uses, behind the proxy that fails. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type LocalDynamoDb, startDynamoDb } from "../../functions/local/dynamodb.ts";
import { type E2bServer, startE2bServer } from "../../functions/local/e2b/server.ts";
import { type FaultProxy, startFaultProxy } from "../faults/proxy/fault-proxy.ts";

/** What the product's process holds, after its garbage was collected. */
export interface Vitals {
  readonly heapBytes: number;
  readonly rssBytes: number;
  readonly sockets: number;
  /** Other open descriptors. */
  readonly descriptors: number;
  readonly timers: number;
}

export type StackCommand = "vitals";
export type StackReply =
  | { readonly kind: "ready"; readonly url: string; readonly apiKey: string }
  | { readonly kind: "vitals"; readonly vitals: Vitals };

export interface StackUnderTest {
  readonly url: string;
  readonly apiKey: string;
  readonly proxy: FaultProxy;
  readonly e2bServer: E2bServer;
  /** Undefined while it runs, then how it ended. */
  ended(): string | undefined;
  vitals(): Promise<Vitals>;
  /** Kills one of the sandboxes, by its index in the server's list, past the proxy; false when there is none. */
  killSandbox(choose: (count: number) => number): Promise<boolean>;
  /** Kills all of them at once, past the proxy; how many there were. */
  killAllSandboxes(): Promise<number>;
  /** Ends the product, then its services; resolves with the product's exit code. */
  stop(): Promise<number | null>;
}

const apiKey = "e2b_local";

export interface StackUnderTestOptions {
  readonly slots: number;
  readonly seed: number;
  /** Each line that the product says. */
  readonly onLine: (line: string) => void;
}

export async function startStackUnderTest(options: StackUnderTestOptions): Promise<StackUnderTest> {
  const { slots, seed, onLine } = options;
  const e2bServer = await startE2bServer({
    apiKey,
    plan: { basis: "pro", concurrentSandboxes: slots },
    log: (line) => onLine(`e2b: ${line}`),
  });
  const dynamoDb = await startDynamoDb({ port: 0 });
  const { apiUrl: control, sandboxUrl: sandbox } = e2bServer;
  const proxy = await startFaultProxy({ control, sandbox, table: dynamoDb.endpoint, seed, keep: false });
  const environment = { E2B_API_KEY: apiKey, ...proxy.environment };
  const child = fork(fileURLToPath(new URL("stack-process.ts", import.meta.url)), [String(slots)], {
    execArgv: ["--import", "tsx"],
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  const lastLines: string[] = [];
  const hear = (line: string) => {
    lastLines.push(line);
    if (lastLines.length > 20) lastLines.shift();
    onLine(line);
  };
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) createInterface({ input: stream }).on("line", hear);
  }
  let ended: string | undefined;
  const exited = once(child, "exit").then(([code, signal]) => {
    ended = `exit code ${code}, signal ${signal}`;
    return code as number | null;
  });
  const ready = await Promise.race([nextReply(child, "ready"), exited]);
  if (typeof ready !== "object" || ready === null)
    throw new Error(`the stack ended at its start: ${ended}\n${lastLines.join("\n")}`);
  return {
    url: ready.url,
    apiKey: ready.apiKey,
    proxy,
    e2bServer,
    ended: () => ended,
    async vitals() {
      const answer = nextReply(child, "vitals");
      child.send("vitals" satisfies StackCommand);
      return (await answer).vitals;
    },
    killSandbox: (choose) => killOne(control, choose),
    killAllSandboxes: () => killAll(control),
    stop: () => stopAll({ child, exited, proxy, dynamoDb, e2bServer }),
  };
}

async function nextReply<Kind extends StackReply["kind"]>(child: ChildProcess, kind: Kind) {
  for (;;) {
    const [message] = (await once(child, "message")) as [StackReply];
    if (message.kind === kind) return message as Extract<StackReply, { kind: Kind }>;
  }
}

async function killOne(control: string, choose: (count: number) => number): Promise<boolean> {
  const all = await listAll(control);
  const chosen = all[choose(all.length)];
  return chosen !== undefined && kill(control, chosen);
}

async function killAll(control: string): Promise<number> {
  const killed = await Promise.all((await listAll(control)).map((id) => kill(control, id)));
  return killed.filter(Boolean).length;
}

const headers = { "x-api-key": apiKey };

async function listAll(control: string): Promise<string[]> {
  const list = await fetch(`${control}/v2/sandboxes`, { headers });
  return ((await list.json()) as { sandboxID: string }[]).map(({ sandboxID }) => sandboxID);
}

async function kill(control: string, sandboxId: string): Promise<boolean> {
  const killed = await fetch(`${control}/sandboxes/${sandboxId}`, { method: "DELETE", headers });
  return killed.status === 204;
}

async function stopAll(parts: {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly proxy: FaultProxy;
  readonly dynamoDb: LocalDynamoDb;
  readonly e2bServer: E2bServer;
}): Promise<number | null> {
  const { child, exited, proxy, dynamoDb, e2bServer } = parts;
  child.kill("SIGTERM");
  const isLate = setTimeout(() => child.kill("SIGKILL"), 20_000);
  const code = await exited;
  clearTimeout(isLate);
  await proxy.close();
  await dynamoDb.close();
  await e2bServer.close();
  return code;
}
