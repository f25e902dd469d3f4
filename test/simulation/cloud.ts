/**
 * A provider that refuses, loses answers, delivers late, lists in pages and lets sandboxes die, with fencing supervisors
 * in them.
 *
 * It keeps the truth and reports what must never be: more sandboxes than slots, a sandbox killed or dead of its age
 * under a holder who does all that a holder must, two holders whose programs both run, one token used by two.
 */
import type {
  ListedSandbox,
  SandboxChange,
  Sandboxes,
  WorkerCreation,
  WorkerFactory,
  WorkerOrder,
  WorkerStopper,
} from "../../functions/pool/ports.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { Chunk, WorkerEvent } from "../../functions/rewards/ports.ts";
import type { SimulatedProcess } from "./process.ts";
import {
  goodHolders,
  type Holding,
  type ProgramWorld,
  runProgram,
  type SimulatedSandbox,
  supersede,
} from "./programs.ts";
import type { Weather } from "./weather.ts";

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

export interface CloudWorld extends ProgramWorld {
  /** As it is now: it clears up in the end. */
  readonly weather: () => Weather;
  readonly slots: number;
  readonly lifeMs: number;
  /** Whether the table says that this life of the slot is being created, by a creator who is not late. */
  readonly isBeingCreated: (slot: number, generation: number) => boolean;
  /** Whether the slot still lives that life, so that nobody else is given its place. */
  readonly isReserved: (slot: number, generation: number) => boolean;
  /** Whether it is a free worker that the runs want. */
  readonly isWanted: (sandbox: SimulatedSandbox) => boolean;
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
  /** From now on handlers hear nothing of workers that they don't reach. */
  noteUnreachable(): void;
  /** Ends each sandbox with that chance, all in this moment. */
  endMany(chance: number): void;
  /** A sandbox appears that no slot knows; its id. */
  addStray(): string;
  /** Sandboxes that a well holder of a wanted run holds. */
  heldCount(): number;
}

/** When a creator gives up; usually a creation has landed by then, or never does. */
const createTimeoutMs = 45_000;
/** Some that get no answer land later, while the table still keeps their slot for them. */
const landsLateMs: RangeMs = [createTimeoutMs, 100_000];
/** And some when the slot may have been another's for long. */
const landsBeyondMs: RangeMs = [116_000, 600_000];
/** What says nothing for so long is given up: a worker, and a supervisor that is to say that it is ready. */
const silenceMs = 15_000;
const readyTimeoutMs = 30_000;
/** When a sandbox's life ends, the pool knows but by a creation's time. */
const lifesEndMs = 50_000;
/** A list may lack what is new; what is older it lacks only by mistake. */
const isNewMs = 60_000;

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
    for (const { process } of goodHolders(world, sandbox))
      watch.violation(violation, `${sandbox.sandboxId} of ${process.name}`);
    const isWanted = sandbox.isBeingMade && world.isBeingCreated(sandbox.slot, sandbox.generation);
    if (isWanted && !world.isTainted(sandbox)) watch.violation("killed while it was made", sandbox.sandboxId);
    end(sandbox);
  }

  function dieOfAge(sandbox: SimulatedSandbox): void {
    if (!alive.has(sandbox.sandboxId)) return;
    const atMs = Math.min(sandbox.diesAtMs, sandbox.endsAtMs);
    if (atMs > time.nowMs()) time.after(atMs - time.nowMs(), () => dieOfAge(sandbox));
    else if (sandbox.isBelievedGone) end(sandbox);
    else {
      const isLifesEnd = sandbox.endsAtMs - time.nowMs() < lifesEndMs;
      if (weather().isMended && !isLifesEnd && world.isWanted(sandbox) && !world.isTainted(sandbox))
        watch.violation("a worker that is wanted died of age", sandbox.sandboxId);
      endUnused(sandbox, "died of age under its holder");
    }
  }

  function land(order: WorkerOrder, version: string, isDisowned = false): SimulatedSandbox {
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
      version,
      isUnreachable: false,
      isDisowned,
      isBelievedGone: false,
    };
    alive.set(sandbox.sandboxId, sandbox);
    watch.note("provider", `${sandbox.sandboxId} lands for slot ${slot} generation ${generation}`);
    time.after(ttlMs, () => dieOfAge(sandbox));
    if (alive.size > world.slots) checkCount(sandbox);
    return sandbox;
  }

  function checkCount({ sandboxId }: SimulatedSandbox): void {
    const counted = [...alive.values()].filter((one) => !one.isDisowned && !world.isTainted(one));
    if (counted.length > world.slots) watch.violation("more sandboxes than slots", sandboxId);
  }

  /** The sandbox of a creation that gets no answer comes to be some time, or never. */
  function landSome(order: WorkerOrder, version: string): void {
    const odds = weather();
    if (random() >= 0.7) return;
    const isLate = happens(odds.landsLate);
    const isBeyond = !isLate && happens(odds.landsBeyond);
    const afterMs = isLate
      ? drawMs(landsLateMs, random)
      : isBeyond
        ? drawMs(landsBeyondMs, random)
        : random() * createTimeoutMs;
    time.after(afterMs, () => {
      watch.counts.lateLandings += 1;
      if (isLate) watch.counts.landingsAfterTimeout += 1;
      if (isBeyond) watch.counts.landingsAfterClaim += 1;
      if (isLate && weather().isMended && !world.isReserved(order.slot, order.generation))
        watch.violation("a sandbox lands where its slot was given away", `slot ${order.slot}`);
      land(order, version, isBeyond);
    });
  }

  /** Draws only where there is a chance. */
  function happens(chance: number): boolean {
    return chance > 0 && random() < chance;
  }

  async function create(
    order: WorkerOrder,
    { supervisorVersion }: SimulatedProcess,
  ): Promise<WorkerCreation> {
    const odds = weather();
    const luck = random();
    if (luck < odds.createRefused) {
      watch.counts.createsRefused += 1;
      await time.sleep(100 + random() * 400);
      return { kind: "refused", reason: "throttled", fault: fault("429") };
    }
    if (luck < odds.createRefused + odds.createAmbiguous) {
      watch.counts.createsAmbiguous += 1;
      landSome(order, supervisorVersion);
      await time.sleep(random() < 0.5 ? createTimeoutMs : random() * 5_000);
      return { kind: "ambiguous", fault: fault("no answer") };
    }
    await time.sleep(drawMs(latencies.creationMs, random));
    const sandbox = land(order, supervisorVersion);
    const { sandboxId } = sandbox;
    sandbox.isBeingMade = true;
    await time.sleep(weather().isEdgeAway ? readyTimeoutMs : drawMs(latencies.readinessMs, random));
    sandbox.isBeingMade = false;
    if (random() < odds.createUnproved || !alive.has(sandboxId) || !isReachable(sandbox)) {
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
    untruth: (sandbox: SimulatedSandbox) => void,
  ): Promise<SandboxChange> {
    const failed: SandboxChange = { kind: "failed", reason: "ambiguous", fault: fault("no answer") };
    await time.sleep(30 + random() * 60);
    const fails = random() < odds;
    if (fails && random() < 0.5) return failed;
    const sandbox = alive.get(sandboxId);
    if (sandbox !== undefined && happens(weather().goneUntrue)) {
      watch.counts.untruths += 1;
      untruth(sandbox);
      return { kind: "gone" };
    }
    if (sandbox !== undefined) effect(sandbox);
    await time.sleep(30 + random() * 60);
    if (fails) return failed;
    return { kind: sandbox === undefined ? "gone" : "done" };
  }

  async function kill(sandboxId: string): Promise<SandboxChange> {
    const { killFault, killUnheard } = weather();
    const answer = await change(
      sandboxId,
      killFault,
      (sandbox) => endUnused(sandbox, "killed under its holder"),
      (sandbox) => {
        sandbox.isDisowned = true;
      },
    );
    if (answer.kind !== "done" || !happens(killUnheard)) return answer;
    watch.counts.killsDoneUnheard += 1;
    return { kind: "failed", reason: "ambiguous", fault: fault("no answer") };
  }

  function renew(sandboxId: string, ttlMs: number): Promise<SandboxChange> {
    if (ttlMs <= 0) watch.violation("renewed for no time at all", sandboxId);
    return change(
      sandboxId,
      weather().renewFault,
      (sandbox) => {
        sandbox.diesAtMs = time.nowMs() + ttlMs;
        time.after(ttlMs, () => dieOfAge(sandbox));
      },
      (sandbox) => {
        sandbox.isBelievedGone = true;
      },
    );
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
        if (sandbox.slot % 2 !== page || sandbox.poolId !== poolId || !isOld(sandbox)) continue;
        if (isMissed(sandbox)) watch.counts.untruths += 1;
        else pages.push(sandbox);
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

  function isMissed({ startedAtMs }: SimulatedSandbox): boolean {
    return startedAtMs < time.nowMs() - isNewMs && happens(weather().listMisses);
  }

  function isReachable({ isUnreachable }: SimulatedSandbox): boolean {
    return !isUnreachable && !weather().isEdgeAway;
  }

  /** Whoever listens to it gives up after a while, if it can't be reached then either; what runs there runs on. */
  function noteUnreachable(sandbox: SimulatedSandbox): void {
    const programs = [...sandbox.programs];
    time.after(silenceMs, () => {
      if (!isReachable(sandbox)) for (const program of programs) if (!program.stopped) program.leave();
    });
  }

  /** Resolves with silence. */
  async function silence(signal: AbortSignal): Promise<Fault> {
    watch.counts.unreached += 1;
    await time.sleep(silenceMs, signal);
    return new Fault("worker_lost", "no answer");
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
    if (happens(weather().workerUnreachable)) sandbox.isUnreachable = true;
    if (!isReachable(sandbox)) throw await silence(signal);
    if (token < sandbox.highestToken) throw new Fault("supervisor_protocol", "stale token");
    if (process.supervisorVersion !== sandbox.version)
      watch.violation("a worker of another version", `${sandboxId} of ${process.name}`);
    supersede(world, sandbox, token, process);
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
    if (how === "unheard" || (how === "completed" && !isReachable(sandbox))) throw await silence(signal);
    if (how === "completed" && random() < odds.lostAnswer / 4)
      throw new Fault("worker_lost", "the stream was cut");
    if (how === "deadline") watch.counts.livesEnded += 1;
    yield { kind: "summary", end: how };
  }

  async function stop(sandboxId: string, token: number, signal: AbortSignal): Promise<void> {
    await time.sleep(10 + random() * 40);
    const isSilent = random() < weather().killFault;
    if (isSilent && random() < 0.5) throw new Fault("worker_lost", "no answer");
    const sandbox = alive.get(sandboxId);
    if (sandbox === undefined) throw new Fault("worker_lost", "no such sandbox");
    if (!isReachable(sandbox)) throw await silence(signal);
    if (token < sandbox.highestToken) throw new Fault("supervisor_protocol", "stale token");
    supersede(world, sandbox, token, null);
    for (const program of sandbox.programs) program.stop("superseded");
    await time.sleep(10 + random() * 200);
    if (isSilent) throw new Fault("worker_lost", "no answer");
  }

  return {
    alive,
    stopper: { stop: ({ sandboxId }, token, signal) => stop(sandboxId, token, signal) },
    runs: (batchId) =>
      [...alive.values()].some(({ programs }) => programs.some(({ chunkId }) => chunkId === batchId)),
    sandboxes: {
      create: () => Promise.reject(new Error("the pool creates through the factory")),
      kill,
      renew,
      list,
    },
    workersFor: (process) => ({
      create: (order) => create(order, process),
      attach: ({ sandboxId }) => ({
        execute: (chunk, token, signal) => execute(process, sandboxId, chunk, token, signal),
      }),
    }),
    hold(sandboxId, holding) {
      const sandbox = alive.get(sandboxId);
      sandbox?.holdings.add(holding);
      return () => sandbox?.holdings.delete(holding);
    },
    noteUnreachable() {
      for (const sandbox of alive.values()) noteUnreachable(sandbox);
    },
    endMany(chance) {
      for (const sandbox of [...alive.values()]) {
        if (random() >= chance) continue;
        watch.counts.sandboxDeaths += 1;
        end(sandbox);
      }
    },
    addStray: () => land({ poolId: "pool-1", slot: 0, generation: 0, ttlMs: 600_000 }, "v1").sandboxId,
    heldCount: () =>
      [...alive.values()].filter(({ holdings }) =>
        [...holdings].some(({ process, isWanted }) => process.isAlive() && isWanted()),
      ).length,
  };
}
