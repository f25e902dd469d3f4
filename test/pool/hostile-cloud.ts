/**
 * A provider that refuses, loses answers, delivers late and lets sandboxes die, with fencing supervisors in them.
 *
 * It keeps the truth, and tells what must never happen: more sandboxes than slots, a sandbox killed under a holder whose
 * lease is good, one token used by two.
 */
import type {
  ListedSandbox,
  Sandboxes,
  WorkerCreation,
  WorkerFactory,
  WorkerOrder,
} from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { VirtualClock } from "./virtual-clock.ts";

interface Sandbox extends ListedSandbox {
  diesAtMs: number;
  /** The supervisor's memory: the highest token it was told. */
  highestToken: number;
  running: { readonly token: number; readonly holder: Holder; stopped: boolean } | null;
}

/** A process that holds leases; well when it is alive and has been on time lately, so that its leases must be good. */
export interface Holder {
  isWell(): boolean;
}

export interface HostileCloud {
  readonly sandboxes: Sandboxes;
  workersFor(holder: Holder): WorkerFactory;
  readonly alive: Map<string, Sandbox>;
  created: number;
}

export interface CloudWatch {
  readonly slots: number;
  /** Nothing fails any more. */
  isCalm(): boolean;
  violation(what: string): void;
}

export function createHostileCloud(
  time: VirtualClock,
  random: () => number,
  watch: CloudWatch,
): HostileCloud {
  const alive = new Map<string, Sandbox>();
  const fault = (what: string) => new Fault("sandbox_unavailable", what);

  function reap(): void {
    for (const sandbox of alive.values()) {
      if (sandbox.diesAtMs <= time.nowMs()) stop(sandbox, "died under its holder");
    }
  }

  /** Ends a sandbox that nobody should be using. */
  function stop(sandbox: Sandbox, violation: string): void {
    const { running } = sandbox;
    if (running !== null && !running.stopped && running.holder.isWell()) watch.violation(violation);
    end(sandbox);
  }

  function end(sandbox: Sandbox): void {
    if (sandbox.running !== null) sandbox.running.stopped = true;
    alive.delete(sandbox.sandboxId);
  }

  /** What the supervisor does when it is told a token: it stops what runs under an older one. */
  function supersede(sandbox: Sandbox, token: number): void {
    const { running } = sandbox;
    sandbox.highestToken = token;
    if (running === null || running.stopped) return;
    if (running.token === token) watch.violation("one token used by two");
    if (running.holder.isWell()) watch.violation("taken from its holder");
    running.stopped = true;
  }

  function land(order: WorkerOrder): string {
    reap();
    cloud.created += 1;
    const sandboxId = `i${cloud.created}`;
    const { slot, generation, poolId, ttlMs } = order;
    const startedAtMs = time.nowMs();
    const meta = { sandboxId, slot, generation, poolId, startedAtMs };
    alive.set(sandboxId, { ...meta, diesAtMs: startedAtMs + ttlMs, highestToken: 0, running: null });
    if (alive.size > watch.slots) watch.violation("more sandboxes than slots");
    return sandboxId;
  }

  async function create(order: WorkerOrder): Promise<WorkerCreation> {
    const luck = watch.isCalm() ? 1 : random();
    if (luck < 0.1) return { kind: "refused", reason: "throttled", fault: fault("429") };
    if (luck < 0.2) {
      if (random() < 0.7) void time.sleep(random() * 45_000).then(() => land(order));
      await time.sleep(45_000);
      return { kind: "ambiguous", fault: fault("no answer") };
    }
    await time.sleep(400 + random() * 3_000);
    const sandboxId = land(order);
    if (luck < 0.23)
      return { kind: "unproved", sandboxId, fault: new Fault("isolation_failed", "not proved") };
    return { kind: "created", sandboxId, access: "" };
  }

  const cloud: HostileCloud = {
    alive,
    created: 0,
    sandboxes: {
      create: () => Promise.reject(new Error("the pool creates through the factory")),
      async kill(sandboxId) {
        await time.sleep(60);
        if (random() < 0.05 && !watch.isCalm())
          return { kind: "failed", reason: "ambiguous", fault: fault("no answer") };
        reap();
        const sandbox = alive.get(sandboxId);
        if (sandbox === undefined) return { kind: "gone" };
        stop(sandbox, "killed under its holder");
        return { kind: "done" };
      },
      async renew(sandboxId, ttlMs) {
        await time.sleep(60);
        reap();
        const sandbox = alive.get(sandboxId);
        if (sandbox === undefined) return { kind: "gone" };
        sandbox.diesAtMs = time.nowMs() + ttlMs;
        return { kind: "done" };
      },
      async list(poolId) {
        await time.sleep(random() * 300);
        reap();
        const listed = [...alive.values()].filter((sandbox) => sandbox.poolId === poolId);
        await time.sleep(random() * 300);
        return listed;
      },
    },
    workersFor: (holder) => ({
      create,
      attach: ({ sandboxId }) => ({
        async *execute(chunk, fencingToken, signal) {
          await time.sleep(20);
          reap();
          const sandbox = alive.get(sandboxId);
          if (sandbox === undefined) throw new Fault("worker_lost", "no such sandbox");
          if (fencingToken < sandbox.highestToken) throw new Fault("supervisor_protocol", "stale token");
          supersede(sandbox, fencingToken);
          const run = { token: fencingToken, holder, stopped: false };
          sandbox.running = run;
          if (random() < 0.01) void time.sleep(random() * chunk.deadlineMs).then(() => end(sandbox));
          await time.sleep(chunk.deadlineMs, signal);
          const how = run.stopped ? (alive.has(sandboxId) ? "superseded" : null) : "completed";
          run.stopped = true;
          if (how === null) throw new Fault("worker_lost", "the sandbox is gone");
          yield { kind: "summary", end: signal.aborted ? "cancelled" : how };
        },
      }),
    }),
  };
  return cloud;
}
