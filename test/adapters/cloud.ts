/** An E2B to test against, the local server, and what adapters are made with. */
import { randomBytes } from "node:crypto";
import { expect } from "vitest";
import type { E2bOptions } from "../../functions/adapters/e2b-options.ts";
import { createE2bSandboxes } from "../../functions/adapters/e2b-sandboxes.ts";
import { createE2bWorkerFactory } from "../../functions/adapters/e2b-worker-factory.ts";
import { readSupervisorFiles } from "../../functions/adapters/supervisor-files.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import { startE2bServer } from "../../functions/local/e2b/server.ts";
import type { SandboxAddress, SandboxMeta, WorkerCreation, WorkerOrder } from "../../functions/pool/ports.ts";
import type { Chunk, Clock, WorkerEvent } from "../../functions/rewards/ports.ts";

export const supervisor = readSupervisorFiles();

export const newPoolId = () => randomBytes(9).toString("base64url");

/** A server, in this process or in one of its own. */
export interface TestServer {
  readonly target: { readonly apiKey: string; readonly apiUrl: string; readonly sandboxUrl: string };
  stop(): Promise<void>;
}

/** Starts a server in this process whose plan is in no test's way. */
export async function startRoomyServer(
  apiKey = "e2b_test",
  log: (line: string) => void = () => {},
): Promise<TestServer> {
  const plan = { concurrentSandboxes: 100, createsPerSecond: 1_000 };
  const { apiUrl, sandboxUrl, close } = await startE2bServer({ apiKey, plan, log });
  return { target: { apiKey, apiUrl, sandboxUrl }, stop: close };
}

/** Options for a server, or for proxies before it. */
export function optionsFor(server: TestServer, changes: Partial<E2bOptions> = {}): E2bOptions {
  const { apiKey, apiUrl, sandboxUrl } = server.target;
  return { apiKey, apiUrl, sandboxUrl, ...changes };
}

export function newOrder(changes: Partial<WorkerOrder> = {}): WorkerOrder {
  return { poolId: newPoolId(), slot: 3, generation: 7, ttlMs: 120_000, ...changes };
}

export const factoryFor = (e2b: E2bOptions, clock: Clock = systemClock) =>
  createE2bWorkerFactory({ e2b, supervisor, clock });

/** A clock on which pauses take no time to speak of; deadlines, of a second or more, stay what they are. */
export const hastyClock: Clock = {
  nowMs: systemClock.nowMs,
  sleep: (ms, signal) => systemClock.sleep(ms < 1_000 ? Math.min(ms, 60) : ms, signal),
};

export const never = new AbortController().signal;

/** Kills every sandbox of the pools, and says which there were. */
export async function sweep(options: E2bOptions, ...poolIds: string[]): Promise<string[]> {
  const sandboxes = createE2bSandboxes(options);
  const lists = await Promise.all(poolIds.map((poolId) => sandboxes.list(poolId)));
  const ids = lists.flat().map(({ sandboxId }) => sandboxId);
  for (const id of ids) expect((await sandboxes.kill(id)).kind).not.toBe("failed");
  return ids;
}

/** A chunk of one program that doubles the number on its standard input. */
export const doublingChunk = (chunkId: string): Chunk => ({
  chunkId,
  deadlineMs: 20_000,
  programs: [
    {
      id: "p",
      source: "print(int(input()) * 2)",
      inputs: ["21", "4"],
      limits: { timeMs: 2_000, memoryMib: 64, outputBytes: 1_000 },
    },
  ],
});

export async function collect(events: AsyncIterable<WorkerEvent>): Promise<WorkerEvent[]> {
  const all: WorkerEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** What a chunk's programs printed, case by case. */
export function outputsOf(events: readonly WorkerEvent[]): (string | null)[] {
  const outputs: (string | null)[] = [];
  for (const event of events) {
    if (event.kind === "case_ended") outputs[event.caseIndex] = event.outcome.stdout;
  }
  return outputs;
}

export const metaOf = ({ poolId, slot, generation }: SandboxMeta): SandboxMeta => ({
  poolId,
  slot,
  generation,
});

/** The address of a worker that was created; throws, saying why, when it wasn't. */
export function addressFrom(outcome: WorkerCreation): SandboxAddress {
  if (outcome.kind !== "created") throw new Error(`${outcome.kind}: ${outcome.fault.message}`);
  const { sandboxId, access } = outcome;
  return { sandboxId, access };
}
