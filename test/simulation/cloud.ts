/**
 * A provider that refuses, loses answers, delivers late, lists in pages and lets sandboxes die, with fencing supervisors
 * in them.
 *
 * It keeps the truth and reports what must never be: more sandboxes than slots, a sandbox killed or dead of its age
 * under a holder who does all that a holder must, two holders whose programs both run, one token used by two.
 */
import type {
  ListedSandbox,
  Sandboxes,
  WorkerCreation,
  WorkerFactory,
  WorkerOrder,
  WorkerStopper,
} from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { Chunk, WorkerEvent } from "../../functions/rewards/ports.ts";
import type { SimulatedProcess } from "./process.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import type { Watch } from "./watch.ts";
import type { Weather } from "./weather.ts";

/** A lease as its holder sees it, from the moment it has it to the moment it gives it back. */
export interface Holding {
  readonly token: number;
  readonly process: SimulatedProcess;
  /** Whether nobody has a reason to take the worker away: its run isn't finished. */
  isWanted(): boolean;
}

interface Program {
  readonly token: number;
  readonly process: SimulatedProcess;
  readonly chunkId: string;
  stopped: boolean;
  stop(how: "superseded" | "gone"): void;
}

export interface SimulatedSandbox extends ListedSandbox {
  diesAtMs: number;
  readonly endsAtMs: number;
  /** The supervisor's memory: the highest token it was told. */
  highestToken: number;
  programs: Program[];
  /** Its supervisor is being started in it. */
  isBeingMade: boolean;
  readonly holdings: Set<Holding>;
}

/** Between how many and how many milliseconds what takes. */
export type RangeMs = readonly [leastMs: number, mostMs: number];

export interface Latencies {
  /** To the table, and the same back, in whole milliseconds. */
  readonly tableWayMs: RangeMs;
  readonly creationMs: RangeMs;
  /** From a sandbox to a supervisor that has proved its isolation. */
  readonly readinessMs: RangeMs;
  /** From a handler to a worker. */
  readonly workerWayMs: RangeMs;
}

export const usualLatencies: Latencies = {
  tableWayMs: [1, 8],
  creationMs: [400, 3_400],
  readinessMs: [200, 1_200],
  workerWayMs: [10, 30],
};

/** What the supervisor of a sandbox does with a chunk that has reached it. */
export type Supervise = (sandboxId: string, chunk: Chunk, signal: AbortSignal) => AsyncIterable<WorkerEvent>;

export function drawMs([leastMs, mostMs]: RangeMs, random: () => number): number {
  return leastMs + random() * (mostMs - leastMs);
}

export interface CloudWorld {
  readonly time: SimulatedTime;
  readonly random: () => number;
  readonly watch: Watch;
  /** As it is now: it clears up in the end. */
  readonly weather: () => Weather;
  readonly slots: number;
  readonly lifeMs: number;
  /** Whether the table says that this life of the slot is being created, by a creator who is not late. */
  readonly isBeingCreated: (slot: number, generation: number) => boolean;
  readonly latencies: Latencies;
  /** Without one a chunk takes the time that its deadline says. */
  readonly supervise?: Supervise;
}

export interface SimulatedCloud {
  readonly alive: ReadonlyMap<string, SimulatedSandbox>;
  readonly sandboxes: Sandboxes;
  readonly stopper: WorkerStopper;
  /** Whether programs of that batch run anywhere. */
  runs(batchId: string): boolean;
  workersFor(process: SimulatedProcess): WorkerFactory;
  /** A holder has the worker; the function returned takes that back. */
  hold(sandboxId: string, holding: Holding): () => void;
  /** A sandbox appears that no slot knows; its id. */
  addStray(): string;
  /** Sandboxes that a well holder of a wanted run holds. */
  heldCount(): number;
}

/** A creation that timed out has landed by then, or never does: the provider answers late, but not that late. */
const createTimeoutMs = 45_000;

export function createCloud(world: CloudWorld): SimulatedCloud {
  const { time, random, watch, weather, latencies } = world;
  const alive = new Map<string, SimulatedSandbox>();
  let landed = 0;
  const fault = (what: string) => new Fault("sandbox_unavailable", what);

  function end(sandbox: SimulatedSandbox): void {
    alive.delete(sandbox.sandboxId);
    for (const program of sandbox.programs) program.stop("gone");
    sandbox.programs = [];
  }

  /** Ends a sandbox that nobody should be using. */
  function endUnused(sandbox: SimulatedSandbox, violation: string): void {
    for (const holding of sandbox.holdings) {
      if (isGood(holding, sandbox))
        watch.violation(violation, `${sandbox.sandboxId} of ${holding.process.name}`);
    }
    if (sandbox.isBeingMade && world.isBeingCreated(sandbox.slot, sandbox.generation))
      watch.violation("killed while it was made", sandbox.sandboxId);
    end(sandbox);
  }

  function dieOfAge(sandbox: SimulatedSandbox): void {
    if (!alive.has(sandbox.sandboxId)) return;
    const atMs = Math.min(sandbox.diesAtMs, sandbox.endsAtMs);
    if (atMs > time.nowMs()) time.after(atMs - time.nowMs(), () => dieOfAge(sandbox));
    else endUnused(sandbox, "died of age under its holder");
  }

  function land(order: WorkerOrder): SimulatedSandbox {
    landed += 1;
    const nowMs = time.nowMs();
    const { poolId, slot, generation, ttlMs } = order;
    const sandbox: SimulatedSandbox = {
      sandboxId: `i${landed}`,
      poolId,
      slot,
      generation,
      startedAtMs: nowMs,
      diesAtMs: nowMs + ttlMs,
      endsAtMs: nowMs + world.lifeMs,
      highestToken: 0,
      programs: [],
      isBeingMade: false,
      holdings: new Set(),
    };
    alive.set(sandbox.sandboxId, sandbox);
    watch.note("provider", `${sandbox.sandboxId} lands for slot ${slot} generation ${generation}`);
    time.after(ttlMs, () => dieOfAge(sandbox));
    if (alive.size > world.slots) watch.violation("more sandboxes than slots", sandbox.sandboxId);
    return sandbox;
  }

  async function create(order: WorkerOrder): Promise<WorkerCreation> {
    const odds = weather();
    const luck = random();
    if (luck < odds.createRefused) {
      watch.counts.createsRefused += 1;
      await time.sleep(100 + random() * 400);
      return { kind: "refused", reason: "throttled", fault: fault("429") };
    }
    if (luck < odds.createRefused + odds.createAmbiguous) {
      watch.counts.createsAmbiguous += 1;
      if (random() < 0.7) {
        time.after(random() * createTimeoutMs, () => {
          watch.counts.lateLandings += 1;
          land(order);
        });
      }
      await time.sleep(random() < 0.5 ? createTimeoutMs : random() * 5_000);
      return { kind: "ambiguous", fault: fault("no answer") };
    }
    await time.sleep(drawMs(latencies.creationMs, random));
    const sandbox = land(order);
    const { sandboxId } = sandbox;
    sandbox.isBeingMade = true;
    await time.sleep(drawMs(latencies.readinessMs, random));
    sandbox.isBeingMade = false;
    if (random() < odds.createUnproved) {
      watch.counts.createsUnproved += 1;
      return { kind: "unproved", sandboxId, fault: new Fault("isolation_failed", "not proved") };
    }
    watch.counts.created += 1;
    return { kind: "created", sandboxId, access: "a" };
  }

  async function change(
    sandboxId: string,
    odds: number,
    effect: (sandbox: SimulatedSandbox) => void,
  ): Promise<{ kind: "done" | "gone" } | { kind: "failed"; reason: "ambiguous"; fault: Fault }> {
    await time.sleep(30 + random() * 60);
    const fails = random() < odds;
    if (fails && random() < 0.5) return { kind: "failed", reason: "ambiguous", fault: fault("no answer") };
    const sandbox = alive.get(sandboxId);
    if (sandbox !== undefined) effect(sandbox);
    await time.sleep(30 + random() * 60);
    if (fails) return { kind: "failed", reason: "ambiguous", fault: fault("no answer") };
    return { kind: sandbox === undefined ? "gone" : "done" };
  }

  /** Two pages, read at different times; a sandbox is on the one or the other. */
  async function list(poolId: string): Promise<ListedSandbox[]> {
    const odds = weather();
    const pages: ListedSandbox[] = [];
    for (const page of [0, 1]) {
      await time.sleep(random() * 300);
      if (random() < odds.listFault / 2) {
        watch.counts.listFaults += 1;
        throw fault(`page ${page} of the list`);
      }
      const isOld = (sandbox: ListedSandbox) =>
        sandbox.startedAtMs <= time.nowMs() - odds.listLagMs * random();
      for (const sandbox of alive.values()) {
        if (sandbox.slot % 2 === page && sandbox.poolId === poolId && isOld(sandbox)) pages.push(sandbox);
      }
    }
    await time.sleep(random() * 300);
    return pages.map(({ sandboxId, slot, generation, startedAtMs }) => ({
      sandboxId,
      poolId,
      slot,
      generation,
      startedAtMs,
    }));
  }

  async function* execute(
    process: SimulatedProcess,
    sandboxId: string,
    chunk: Chunk,
    token: number,
    signal: AbortSignal,
  ): AsyncIterable<WorkerEvent> {
    await time.sleep(drawMs(latencies.workerWayMs, random));
    if (!process.isAlive()) return;
    const sandbox = alive.get(sandboxId);
    if (sandbox === undefined) throw new Fault("worker_lost", "no such sandbox");
    if (token < sandbox.highestToken) throw new Fault("supervisor_protocol", "stale token");
    supersede(watch, sandbox, token, process);
    if (world.supervise !== undefined) {
      yield* world.supervise(sandboxId, chunk, signal);
      return;
    }
    const odds = weather();
    if (random() < odds.sandboxDeath) {
      time.after(random() * chunk.deadlineMs, () => {
        if (!alive.has(sandboxId)) return;
        watch.counts.sandboxDeaths += 1;
        end(sandbox);
      });
    }
    const how = await runProgram(world, sandbox, { token, process, chunkId: chunk.chunkId }, chunk, signal);
    if (how === "gone") throw new Fault("worker_lost", "the sandbox is gone");
    if (how === "completed" && random() < odds.lostAnswer / 4)
      throw new Fault("worker_lost", "the stream was cut");
    yield { kind: "summary", end: how };
  }

  async function stop(sandboxId: string, token: number): Promise<void> {
    await time.sleep(10 + random() * 40);
    const isSilent = random() < weather().killFault;
    if (isSilent && random() < 0.5) throw new Fault("worker_lost", "no answer");
    const sandbox = alive.get(sandboxId);
    if (sandbox === undefined) throw new Fault("worker_lost", "no such sandbox");
    if (token < sandbox.highestToken) throw new Fault("supervisor_protocol", "stale token");
    supersede(watch, sandbox, token, null);
    for (const program of sandbox.programs) program.stop("superseded");
    await time.sleep(10 + random() * 200);
    if (isSilent) throw new Fault("worker_lost", "no answer");
  }

  return {
    alive,
    stopper: { stop: ({ sandboxId }, token) => stop(sandboxId, token) },
    runs: (batchId) =>
      [...alive.values()].some(({ programs }) => programs.some(({ chunkId }) => chunkId === batchId)),
    sandboxes: {
      create: () => Promise.reject(new Error("the pool creates through the factory")),
      kill: (sandboxId) =>
        change(sandboxId, weather().killFault, (sandbox) => endUnused(sandbox, "killed under its holder")),
      renew: (sandboxId, ttlMs) =>
        change(sandboxId, weather().renewFault, (sandbox) => {
          sandbox.diesAtMs = time.nowMs() + ttlMs;
          time.after(ttlMs, () => dieOfAge(sandbox));
        }),
      list,
    },
    workersFor: (process) => ({
      create,
      attach: ({ sandboxId }) => ({
        execute: (chunk, token, signal) => execute(process, sandboxId, chunk, token, signal),
      }),
    }),
    hold(sandboxId, holding) {
      const sandbox = alive.get(sandboxId);
      sandbox?.holdings.add(holding);
      return () => sandbox?.holdings.delete(holding);
    },
    addStray: () => land({ poolId: "pool-1", slot: 0, generation: 0, ttlMs: 600_000 }).sandboxId,
    heldCount: () =>
      [...alive.values()].filter(({ holdings }) =>
        [...holdings].some(({ process, isWanted }) => process.isAlive() && isWanted()),
      ).length,
  };
}

/** A holder that is on time, whose worker nobody has a reason to take. */
function isGood(holding: Holding, { highestToken }: SimulatedSandbox): boolean {
  return holding.process.isWell() && holding.isWanted() && holding.token >= highestToken;
}

/** What the supervisor does when it is told a token: it stops what runs under an older one. */
function supersede(
  watch: Watch,
  sandbox: SimulatedSandbox,
  token: number,
  process: SimulatedProcess | null,
): void {
  const isNew = token > sandbox.highestToken;
  for (const holding of sandbox.holdings) {
    if (holding.token === token && holding.process !== process)
      watch.violation("one token used by two", `${sandbox.sandboxId} ${token}`);
    else if (isNew && holding.token < token && isGood(holding, sandbox))
      watch.violation("taken from its holder", `${sandbox.sandboxId} of ${holding.process.name}`);
  }
  sandbox.highestToken = token;
  for (const program of sandbox.programs) if (program.token < token) program.stop("superseded");
  sandbox.programs = sandbox.programs.filter(({ stopped }) => !stopped);
  if (sandbox.programs.some((program) => program.process !== process))
    watch.violation("programs of two holders run", `${sandbox.sandboxId} ${token}`);
}

/** Runs for as long as the chunk's deadline says, unless stopped first. */
function runProgram(
  { time, random }: CloudWorld,
  sandbox: SimulatedSandbox,
  { token, process, chunkId }: Pick<Program, "token" | "process" | "chunkId">,
  chunk: Chunk,
  signal: AbortSignal,
): Promise<"completed" | "superseded" | "cancelled" | "gone"> {
  return new Promise((resolve) => {
    // The supervisor sees that a connection has closed, but not one that is half open.
    const isSeen = random() < 0.7;
    const forget = process.onCrash(() => {
      if (isSeen) finish("cancelled");
    });
    const cancel = () => finish("cancelled");
    const program: Program = { token, process, chunkId, stopped: false, stop: finish };
    function finish(how: "completed" | "superseded" | "cancelled" | "gone"): void {
      if (program.stopped) return;
      program.stopped = true;
      forget();
      signal.removeEventListener("abort", cancel);
      sandbox.programs = sandbox.programs.filter((other) => other !== program);
      resolve(how);
    }
    signal.addEventListener("abort", cancel);
    if (signal.aborted) return finish("cancelled");
    sandbox.programs.push(program);
    time.after(chunk.deadlineMs, () => finish("completed"));
  });
}
