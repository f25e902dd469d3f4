import { randomBytes } from "node:crypto";
import type { Clock } from "../../rewards/ports.ts";
import { ApiError, sandboxNotFound } from "./api-error.ts";
import { type CpuShares, createCpuShares } from "./cpu-shares.ts";
import type { Keeper } from "./keeper.ts";
import { type CreationGate, createCreationGate, type Plan } from "./plan.ts";
import { DISK_MIB_OF_SANDBOX, type SandboxRecord } from "./sandbox-record.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/**
 * The sandboxes there are, their states and their ends. All throw `ApiError` with E2B's status.
 *
 *     creating ──> running <──> paused          a timeout kills, or pauses where the creation asked for it
 *                     └────────────┴──> gone    `find` knows the running and the paused only
 *
 * A creation holds a place under the plan's limit from its first moment; a paused sandbox holds none. While a sandbox
 * changes between running and paused, calls that would change it get 409; a kill never does.
 */
export interface SandboxRegistry {
  create(request: SandboxRequest): Promise<SandboxRecord>;
  /** 404 unless running or paused. */
  find(sandboxId: string): SandboxRecord;
  /** Running sandboxes only: a paused one is as unreachable as one that is gone. */
  findRunning(sandboxId: string): SandboxRecord | null;
  all(): Iterable<SandboxRecord>;
  /** Sets the end to `timeoutMs` from now, or to the end of the plan's longest life. 404 when paused. */
  setTimeout(sandboxId: string, timeoutMs: number): void;
  /** Resumes a paused one; extends a running one's end and never shortens it. */
  connect(sandboxId: string, timeoutMs: number): Promise<Connection>;
  /** 409 when paused already. */
  pause(sandboxId: string): Promise<void>;
  kill(sandboxId: string): Promise<void>;
  /** Its first process died by itself. */
  forget(sandboxId: string): void;
  killAll(): Promise<void>;
}

export interface Connection {
  readonly record: SandboxRecord;
  readonly resumed: boolean;
}

export interface RegistryOptions {
  readonly keeper: Keeper;
  readonly plan: Plan;
  /** CPUs of one sandbox. */
  readonly cpuCount: number;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** Called when a sandbox was paused: open connections into it are to be cut. */
  readonly onUnreachable: (sandboxId: string) => void;
}

interface State extends RegistryOptions {
  readonly records: Map<string, SandboxRecord>;
  /** Cancels the scheduled end, by sandbox. */
  readonly ends: Map<string, AbortController>;
  readonly changing: Set<string>;
  readonly creations: CreationGate;
  readonly shares: CpuShares;
  /** Creations and resumptions under way. */
  starting: number;
}

export function createSandboxRegistry(options: RegistryOptions): SandboxRegistry {
  const state: State = {
    ...options,
    records: new Map(),
    ends: new Map(),
    changing: new Set(),
    creations: createCreationGate(options.plan.createsPerSecond),
    shares: createCpuShares(options.keeper.cpus),
    starting: 0,
  };
  return {
    create: (request) => create(state, request),
    find: (sandboxId) => find(state, sandboxId),
    findRunning(sandboxId) {
      const record = state.records.get(sandboxId);
      return record?.state === "running" ? record : null;
    },
    all: () => state.records.values(),
    setTimeout(sandboxId, timeoutMs) {
      const record = findSettled(state, sandboxId);
      if (record.state === "paused") throw sandboxNotFound(sandboxId);
      scheduleEnd(state, record, state.clock.nowMs() + timeoutMs);
    },
    connect: (sandboxId, timeoutMs) => connect(state, sandboxId, timeoutMs),
    pause: (sandboxId) => pause(state, sandboxId),
    kill: (sandboxId) => kill(state, sandboxId),
    forget(sandboxId) {
      const record = state.records.get(sandboxId);
      if (record === undefined) return;
      state.log(`${sandboxId}: its first process died`);
      remove(state, record);
    },
    async killAll() {
      await Promise.all([...state.records.keys()].map((sandboxId) => kill(state, sandboxId)));
    },
  };
}

async function create(state: State, request: SandboxRequest): Promise<SandboxRecord> {
  refuseTooLong(state, request.timeoutMs);
  if (!state.creations.admit(state.clock.nowMs())) {
    throw new ApiError(429, "Rate limit exceeded, please try again later.");
  }
  refuseIfFull(state);
  state.starting += 1;
  const record = newRecord(request, state.shares.take(state.cpuCount));
  try {
    await state.keeper.create(record.id, {
      cpus: record.cpus,
      diskMib: DISK_MIB_OF_SANDBOX,
      accessToken: record.accessToken,
      environment: request.environment,
    });
  } catch (error) {
    state.shares.giveBack(record.cpus);
    throw new ApiError(500, `Failed to place sandbox: ${(error as Error).message}`);
  } finally {
    state.starting -= 1;
  }
  record.startedAtMs = state.clock.nowMs();
  state.records.set(record.id, record);
  scheduleEnd(state, record, record.startedAtMs + request.timeoutMs);
  return record;
}

async function connect(state: State, sandboxId: string, timeoutMs: number): Promise<Connection> {
  refuseTooLong(state, timeoutMs);
  const record = findSettled(state, sandboxId);
  if (record.state === "running") {
    const endAtMs = state.clock.nowMs() + timeoutMs;
    if (endAtMs > record.endAtMs) scheduleEnd(state, record, endAtMs);
    return { record, resumed: false };
  }
  refuseIfFull(state);
  state.starting += 1;
  try {
    await change(state, record, "resuming", () => state.keeper.thaw(record.id));
  } finally {
    state.starting -= 1;
  }
  record.state = "running";
  record.startedAtMs = state.clock.nowMs();
  scheduleEnd(state, record, record.startedAtMs + timeoutMs);
  return { record, resumed: true };
}

async function pause(state: State, sandboxId: string): Promise<void> {
  const record = findSettled(state, sandboxId);
  if (record.state === "paused") {
    throw new ApiError(409, `Error pausing sandbox - sandbox '${sandboxId}' is already paused`);
  }
  await change(state, record, "pausing", () => state.keeper.freeze(record.id));
  record.state = "paused";
  state.ends.get(record.id)?.abort();
  state.onUnreachable(record.id);
}

async function kill(state: State, sandboxId: string): Promise<void> {
  const record = find(state, sandboxId);
  remove(state, record);
  try {
    await state.keeper.kill(record.id);
  } catch (error) {
    // It died by itself meanwhile: that is what was asked for.
    state.log(`${record.id}: ${(error as Error).message}`);
  }
}

function find(state: State, sandboxId: string): SandboxRecord {
  const record = state.records.get(sandboxId);
  if (record === undefined) throw sandboxNotFound(sandboxId);
  return record;
}

function findSettled(state: State, sandboxId: string): SandboxRecord {
  if (state.changing.has(sandboxId)) throw new ApiError(409, `Sandbox '${sandboxId}' is changing its state`);
  return find(state, sandboxId);
}

async function change(
  state: State,
  record: SandboxRecord,
  what: string,
  act: () => Promise<void>,
): Promise<void> {
  state.changing.add(record.id);
  try {
    await act();
  } catch (error) {
    throw new ApiError(500, `Error ${what} sandbox: ${(error as Error).message}`);
  } finally {
    state.changing.delete(record.id);
  }
  if (state.records.get(record.id) !== record) throw sandboxNotFound(record.id);
}

function remove(state: State, record: SandboxRecord): void {
  state.ends.get(record.id)?.abort();
  state.ends.delete(record.id);
  if (state.records.delete(record.id)) state.shares.giveBack(record.cpus);
}

function scheduleEnd(state: State, record: SandboxRecord, wishedEndAtMs: number): void {
  const { clock, ends, log, plan, records } = state;
  record.endAtMs = Math.min(wishedEndAtMs, record.startedAtMs + plan.maxLifeMs);
  ends.get(record.id)?.abort();
  const cancel = new AbortController();
  ends.set(record.id, cancel);
  clock.sleep(Math.max(0, record.endAtMs - clock.nowMs()), cancel.signal).then(async () => {
    if (cancel.signal.aborted || records.get(record.id) !== record) return;
    log(`${record.id}: its time is over`);
    const end = record.request.onTimeout === "pause" ? pause : kill;
    await end(state, record.id).catch((error: Error) => log(`${record.id}: ${error.message}`));
  });
}

function refuseIfFull({ records, starting, plan }: State): void {
  const running = [...records.values()].filter((record) => record.state === "running").length;
  if (running + starting < plan.concurrentSandboxes) return;
  const message = `you have reached the maximum number of concurrent E2B sandboxes (${plan.concurrentSandboxes})`;
  throw new ApiError(429, `Rate limit exceeded, please try again later. - ${message}`);
}

function refuseTooLong({ plan }: State, timeoutMs: number): void {
  if (timeoutMs <= plan.maxLifeMs) return;
  throw new ApiError(400, `Timeout cannot be greater than ${plan.maxLifeMs / 3_600_000} hours`);
}

function newRecord(request: SandboxRequest, cpus: readonly number[]): SandboxRecord {
  return {
    id: `i${randomBytes(10).toString("hex").slice(0, 19)}`,
    request,
    cpus,
    accessToken: randomBytes(32).toString("hex"),
    trafficToken: request.network.allowPublicTraffic === false ? randomBytes(32).toString("hex") : null,
    state: "running",
    startedAtMs: 0,
    endAtMs: 0,
  };
}
