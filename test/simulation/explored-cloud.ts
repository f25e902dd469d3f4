/** A provider whose sandboxes come and go only when they are told to, with fencing supervisors in them. */
import type { ListedSandbox, WorkerCreation, WorkerOrder } from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";

interface Sandbox {
  readonly sandboxId: string;
  readonly slot: number;
  readonly generation: number;
  highestToken: number;
  /** Who runs programs in it. */
  running: { readonly by: string; readonly token: number } | null;
}

export function createExploredCloud(
  slots: number,
  isGood: (holder: string) => boolean,
  violation: (what: string) => void,
) {
  const alive = new Map<string, Sandbox>();
  const flying = new Map<string, WorkerOrder>();

  /** Named for its place and life, not in the order of coming, so that different ways lead to the same state. */
  function land({ slot, generation }: Pick<WorkerOrder, "slot" | "generation">): string {
    let sandboxId = `i${slot}.${generation}`;
    while (alive.has(sandboxId)) sandboxId += "'";
    alive.set(sandboxId, { sandboxId, slot, generation, highestToken: 0, running: null });
    if (alive.size > slots) violation("more sandboxes than slots");
    return sandboxId;
  }

  return {
    place: (slot: number, generation: number) => land({ slot, generation }),
    create(order: WorkerOrder, how: string): WorkerCreation {
      if (how !== "ambiguous") return { kind: "created", sandboxId: land(order), access: "a" };
      flying.set(`${order.slot}.${order.generation}`, order);
      return { kind: "ambiguous", fault: new Fault("sandbox_unavailable", "no answer") };
    },
    flights: () => [...flying.keys()],
    land(flight: string, lands: boolean): void {
      const order = flying.get(flight);
      flying.delete(flight);
      if (lands && order !== undefined) land(order);
    },
    start(sandboxId: string, token: number, by: string): void {
      const sandbox = alive.get(sandboxId);
      if (sandbox === undefined) throw new Fault("worker_lost", "no such sandbox");
      if (token < sandbox.highestToken) throw new Fault("supervisor_protocol", "stale token");
      const { running } = sandbox;
      if (running !== null && running.by !== by) {
        if (running.token === token) violation("programs of two holders run");
        else if (isGood(running.by)) violation("taken from its holder");
      }
      sandbox.highestToken = token;
      sandbox.running = { by, token };
    },
    end(sandboxId: string, by: string): "completed" | "superseded" {
      const sandbox = alive.get(sandboxId);
      if (sandbox === undefined) throw new Fault("worker_lost", "the sandbox is gone");
      if (sandbox.running?.by !== by) return "superseded";
      sandbox.running = null;
      return "completed";
    },
    kill(sandboxId: string): { kind: "done" | "gone" } {
      const sandbox = alive.get(sandboxId);
      if (sandbox?.running && isGood(sandbox.running.by)) violation("killed under its holder");
      return { kind: alive.delete(sandboxId) ? "done" : "gone" };
    },
    renew: (sandboxId: string): { kind: "done" | "gone" } => ({
      kind: alive.has(sandboxId) ? "done" : "gone",
    }),
    list: (): ListedSandbox[] =>
      [...alive.values()]
        .map(({ sandboxId, slot, generation }) => ({
          sandboxId,
          slot,
          generation,
          poolId: "p",
          startedAtMs: 0,
        }))
        .sort((one, other) => (one.sandboxId < other.sandboxId ? -1 : 1)),
    /** A crashed process's connection is half open: its programs go on. */
    disconnect(_by: string): void {},
    count: () => alive.size,
    state: () =>
      JSON.stringify([
        ...[...alive.values()].sort((a, b) => (a.sandboxId < b.sandboxId ? -1 : 1)),
        ...flying.keys(),
      ]),
  };
}
