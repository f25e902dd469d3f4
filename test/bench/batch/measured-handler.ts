/** The product's process, whose memory and CPU are the handler's alone; sandboxes and table are this one's. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type LocalDynamoDb, startDynamoDb } from "../../../functions/local/dynamodb.ts";
import { type E2bServer, startE2bServer } from "../../../functions/local/e2b/server.ts";
import type { LocalStackOptions } from "../../../functions/local/stack.ts";
import { type StandInWorkers, startStandInWorkers } from "./stand-in-workers.ts";

/** The most that the handler held at any look, and what it cost without the looks. */
export interface Holding {
  readonly heapMib: number;
  /** Buffers outside of the heap. */
  readonly externalMib: number;
  readonly rssMib: number;
  readonly cpuMs: number;
}

export type HandlerCommand =
  | { readonly kind: "watch"; readonly collects: boolean }
  | { readonly kind: "end" };
export type HandlerReply =
  | { readonly kind: "ready"; readonly url: string; readonly apiKey: string }
  | { readonly kind: "watching" }
  | { readonly kind: "held"; readonly holding: Holding };

export interface MeasuredHandler {
  readonly url: string;
  readonly apiKey: string;
  /** What it holds and costs during `work`; with `collects`, after its garbage was collected each time. */
  measure<Value>(
    collects: boolean,
    work: () => Promise<Value>,
  ): Promise<{ readonly holding: Holding; readonly value: Value }>;
  close(): Promise<void>;
}

const apiKey = "e2b_local";

/** With `standIns` the workers are real ones, but their programs are not run. */
export async function startMeasuredHandler(options: {
  readonly standIns: boolean;
  readonly execArgv?: readonly string[];
}): Promise<MeasuredHandler> {
  const e2bServer = await startE2bServer({ apiKey, plan: "pro", cpuCount: 1, log: () => {} });
  const dynamoDb = await startDynamoDb({ port: 0 });
  const standIns = options.standIns ? await startStandInWorkers(e2bServer.sandboxUrl) : null;
  const stack: LocalStackOptions = {
    port: 0,
    plan: "pro",
    cron: false,
    e2b: { apiKey, apiUrl: e2bServer.apiUrl, sandboxUrl: standIns?.url ?? e2bServer.sandboxUrl },
    dynamoDbEndpoint: dynamoDb.endpoint,
  };
  const child = fork(fileURLToPath(new URL("handler-process.ts", import.meta.url)), [JSON.stringify(stack)], {
    execArgv: ["--import", "tsx", ...(options.execArgv ?? [])],
  });
  const exited = once(child, "exit");
  const { url, apiKey: endpointKey } = await Promise.race([
    nextReply(child, "ready"),
    exited.then(([code]) => Promise.reject(new Error(`the handler ended at its start with ${code}`))),
  ]);
  return {
    url,
    apiKey: endpointKey,
    async measure(collects, work) {
      await ask(child, { kind: "watch", collects }, "watching");
      const value = await work();
      const { holding } = await ask(child, { kind: "end" }, "held");
      return { holding, value };
    },
    close: () => closeAll({ child, exited, standIns, dynamoDb, e2bServer }),
  };
}

async function ask<Kind extends HandlerReply["kind"]>(
  child: ChildProcess,
  command: HandlerCommand,
  kind: Kind,
) {
  const answer = nextReply(child, kind);
  child.send(command);
  return answer;
}

async function nextReply<Kind extends HandlerReply["kind"]>(child: ChildProcess, kind: Kind) {
  for (;;) {
    const [message] = (await once(child, "message")) as [HandlerReply];
    if (message.kind === kind) return message as Extract<HandlerReply, { kind: Kind }>;
  }
}

async function closeAll(parts: {
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  readonly standIns: StandInWorkers | null;
  readonly dynamoDb: LocalDynamoDb;
  readonly e2bServer: E2bServer;
}): Promise<void> {
  parts.child.kill("SIGTERM");
  await parts.exited;
  await parts.standIns?.close();
  await parts.dynamoDb.close();
  await parts.e2bServer.close();
}
