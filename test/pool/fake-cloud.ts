/** Sandboxes and workers that exist only in this process, with the truth about them for assertions. */
import type {
  ListedSandbox,
  SandboxAddress,
  Sandboxes,
  WorkerCreation,
  WorkerFactory,
} from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { Chunk, Clock, WorkerEvent } from "../../functions/rewards/ports.ts";

export interface FakeCloud {
  readonly sandboxes: Sandboxes;
  readonly workers: WorkerFactory;
  /** Sandboxes that exist now. */
  readonly alive: Map<string, ListedSandbox>;
  /** Most that ever existed at once. */
  mostAlive(): number;
  /** When each creation was asked for. */
  readonly createdAtMs: number[];
  readonly killed: string[];
  /** What the next creations come to, first first; `created` when the list is empty. */
  readonly script: (
    | "created"
    | Exclude<WorkerCreation["kind"], "created">
    | "misconfigured"
    | "lands_late"
  )[];
  /** What refusals say of when to ask again. */
  retryAfterMs: number | null;
  /** How kills end. */
  kills: "done" | "failed";
  /** The chunks that run, by worker, with the token that each was started with. */
  readonly started: {
    readonly sandboxId: string;
    readonly fencingToken: number;
    readonly signal: AbortSignal;
  }[];
}

export function createFakeCloud(clock: Clock, createMs: number): FakeCloud {
  const alive = new Map<string, ListedSandbox>();
  let made = 0;
  let mostAlive = 0;

  function land(order: Parameters<WorkerFactory["create"]>[0]): SandboxAddress {
    made += 1;
    const sandboxId = `i${String(made).padStart(20, "0")}`;
    alive.set(sandboxId, { ...order, sandboxId, startedAtMs: clock.nowMs() });
    mostAlive = Math.max(mostAlive, alive.size);
    return { sandboxId, access: `${"a".repeat(64)} ${"b".repeat(64)}` };
  }

  const cloud: FakeCloud = {
    alive,
    mostAlive: () => mostAlive,
    createdAtMs: [],
    killed: [],
    script: [],
    retryAfterMs: null,
    kills: "done",
    started: [],
    workers: {
      async create(order): Promise<WorkerCreation> {
        cloud.createdAtMs.push(clock.nowMs());
        const outcome = cloud.script.shift() ?? "created";
        if (createMs > 0) await clock.sleep(createMs);
        if (outcome === "created") return { kind: "created", ...land(order) };
        if (outcome === "unproved") {
          const fault = new Fault("isolation_failed", "the network is reachable");
          return { kind: "unproved", sandboxId: land(order).sandboxId, fault };
        }
        if (outcome === "lands_late") void clock.sleep(50_000).then(() => land(order));
        if (outcome === "misconfigured")
          return { kind: "refused", reason: "failed", fault: new Fault("misconfigured", "bad key") };
        const fault = new Fault("sandbox_unavailable", outcome, { retryAfterMs: cloud.retryAfterMs });
        return outcome === "refused"
          ? { kind: "refused", reason: "throttled", fault }
          : { kind: "ambiguous", fault };
      },
      attach: ({ sandboxId }) => ({
        execute: (_chunk, fencingToken, signal) =>
          runUntilAborted(cloud, clock, sandboxId, fencingToken, signal),
      }),
    },
    sandboxes: {
      create: () => Promise.reject(new Error("the pool creates through the factory")),
      async kill(sandboxId) {
        cloud.killed.push(sandboxId);
        if (cloud.kills === "failed")
          return { kind: "failed", reason: "throttled", fault: new Fault("sandbox_unavailable", "429") };
        return alive.delete(sandboxId) ? { kind: "done" } : { kind: "gone" };
      },
      renew: async (sandboxId) => (alive.has(sandboxId) ? { kind: "done" } : { kind: "gone" }),
      list: async (poolId) => [...alive.values()].filter((sandbox) => sandbox.poolId === poolId),
    },
  };
  return cloud;
}

/** Works for as long as the chunk's deadline says, unless stopped; beats every five seconds. */
async function* runUntilAborted(
  cloud: FakeCloud,
  clock: Clock,
  sandboxId: string,
  fencingToken: number,
  signal: AbortSignal,
): AsyncIterable<WorkerEvent> {
  cloud.started.push({ sandboxId, fencingToken, signal });
  while (!signal.aborted) {
    await clock.sleep(5_000, signal);
    if (!signal.aborted) yield { kind: "beat" };
  }
}

export const someChunk: Chunk = { chunkId: "c1", deadlineMs: 600_000, programs: [] };
