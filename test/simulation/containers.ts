/** Handler containers: each serves one request at a time, and lives until it crashes. */
import { createLeaseSource, type LeaseSource } from "../../functions/pool/lease-source.ts";
import { type RunsView, rememberRuns } from "../../functions/pool/runs/target.ts";
import type { SweepContext } from "../../functions/pool/sweep/sweep.ts";
import type { SimulatedProcess } from "./process.ts";
import type { World } from "./world.ts";

export interface Container {
  readonly process: SimulatedProcess;
  readonly ctx: SweepContext;
  readonly source: LeaseSource;
  readonly runs: RunsView;
}

export function startContainer(world: World, name: string): Container {
  const process = world.startProcess(name, world.weather().handlers);
  world.handlers.add(process);
  process.onCrash(() => world.handlers.delete(process));
  const ctx = world.contextOf(process);
  return {
    process,
    ctx,
    source: createLeaseSource(ctx, (event) => {
      if (event.kind === "leased" && event.how === "taken_over") world.watch.counts.takenOver += 1;
    }),
    runs: rememberRuns(ctx, ctx.settings.slots),
  };
}

export interface Containers<C> {
  /** Serves a request in some container; `crashed` when that one died over it. */
  serve<T>(request: (container: C) => Promise<T>): Promise<T | "crashed">;
}

/** Containers that wait for requests; a new one is started when none does. */
export function createContainers<C extends { readonly process: SimulatedProcess }>(
  world: World,
  start: (number: number) => C,
): Containers<C> {
  const idle: C[] = [];
  let started = 0;
  return {
    async serve(request) {
      // Some time later a container that froze after its answer may still stand still: the request waits with it.
      dropOld(world, idle);
      const at = Math.floor(world.random() * idle.length);
      const [found] = idle.splice(at, 1);
      const container = found?.process.isAlive() ? found : start(++started);
      const answer = request(container);
      // A crash is the end of the request, not an error of it.
      answer.catch(() => {});
      const first = await Promise.race([answer, container.process.crashed.then(() => "crashed" as const)]);
      if (container.process.isAlive()) idle.push(container);
      return first;
    },
  };
}

/** For so long after a deploy a request may still go to a container of the version before. */
const oldServeForMs = 60_000;

/** After a deploy requests go to new containers, some of them not at once. */
function dropOld<C extends { readonly process: SimulatedProcess }>(world: World, idle: C[]): void {
  const version = world.version();
  const oldMayServe = world.time.nowMs() < world.deployedAtMs() + oldServeForMs;
  const isKept = ({ process }: C) =>
    process.supervisorVersion === version || (oldMayServe && world.random() < 0.5);
  const kept = idle.filter(isKept);
  if (kept.length < idle.length) idle.splice(0, idle.length, ...kept);
}
