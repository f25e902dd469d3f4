import { randomBytes } from "node:crypto";
import type { Clock } from "../../rewards/ports.ts";
import { ApiError, sandboxNotFound } from "./api-error.ts";
import { createCpuShares } from "./cpu-shares.ts";
import type { Keeper } from "./keeper.ts";
import { createCreationGate, type Plan } from "./plan.ts";
import { DISK_MIB_OF_SANDBOX, type SandboxRecord } from "./sandbox-record.ts";
import type { SandboxRequest } from "./sandbox-request.ts";

/**
 * The sandboxes there are, their states and their ends. All throw `ApiError` with E2B's status.
 *
 *     creating ──> running <──> paused          a timeout kills, or pauses where the creation asked for it
 *                     └────────────┴──> gone    `find` knows the running and the paused only
 *
 * A creation holds a place under the plan's limit from its first moment; a paused sandbox holds none.
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
  connect(sandboxId: string, timeoutMs: number): Promise<{ record: SandboxRecord; resumed: boolean }>;
  /** 409 when paused already, or while it changes. */
  pause(sandboxId: string): Promise<void>;
  kill(sandboxId: string): Promise<void>;
  /** Its first process died by itself. */
  forget(sandboxId: string): void;
  killAll(): Promise<void>;
}

export interface RegistryOptions {
  readonly keeper: Keeper;
  readonly plan: Plan;
  readonly cpuCount: number;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** Called when a sandbox was paused: open connections into it are to be cut. */
  readonly onUnreachable: (sandboxId: string) => void;
}

export function createSandboxRegistry({
  keeper,
  plan,
  cpuCount,
  clock,
  log,
  onUnreachable,
}: RegistryOptions): SandboxRegistry {
  const records = new Map<string, SandboxRecord>();
  const ends = new Map<string, AbortController>();
  const gate = createCreationGate(plan.createsPerSecond);
  const shares = createCpuShares(keeper.cpus);
  const changing = new Set<string>();
  let starting = 0;

  const refuseIfFull = () => {
    const running = [...records.values()].filter((record) => record.state === "running").length;
    if (running + starting < plan.concurrentSandboxes) return;
    const message = `you have reached the maximum number of concurrent E2B sandboxes (${plan.concurrentSandboxes})`;
    throw new ApiError(429, `Rate limit exceeded, please try again later. - ${message}`);
  };

  const find = (sandboxId: string) => {
    const record = records.get(sandboxId);
    if (record === undefined) throw sandboxNotFound(sandboxId);
    return record;
  };

  const findSettled = (sandboxId: string) => {
    if (changing.has(sandboxId)) throw new ApiError(409, `Sandbox '${sandboxId}' is changing its state`);
    return find(sandboxId);
  };

  const remove = (record: SandboxRecord) => {
    ends.get(record.id)?.abort();
    ends.delete(record.id);
    if (records.delete(record.id)) shares.giveBack(record.cpus);
  };

  const kill = async (sandboxId: string) => {
    const record = find(sandboxId);
    remove(record);
    await keeper.kill(record.id).catch((error: Error) => log(`kill ${record.id}: ${error.message}`));
  };

  /** Runs a change between running and paused; others that meet it get 409. */
  const change = async (record: SandboxRecord, what: string, act: () => Promise<void>) => {
    changing.add(record.id);
    try {
      await act();
    } catch (error) {
      throw new ApiError(500, `Error ${what} sandbox: ${(error as Error).message}`);
    } finally {
      changing.delete(record.id);
    }
    if (records.get(record.id) !== record) throw sandboxNotFound(record.id);
  };

  const pause = async (sandboxId: string) => {
    const record = findSettled(sandboxId);
    if (record.state === "paused") {
      throw new ApiError(409, `Error pausing sandbox - sandbox '${sandboxId}' is already paused`);
    }
    await change(record, "pausing", () => keeper.freeze(record.id));
    record.state = "paused";
    ends.get(record.id)?.abort();
    onUnreachable(record.id);
  };

  const scheduleEnd = (record: SandboxRecord, endAtMs: number) => {
    record.endAtMs = Math.min(endAtMs, record.startedAtMs + plan.maxLifeMs);
    ends.get(record.id)?.abort();
    const cancel = new AbortController();
    ends.set(record.id, cancel);
    clock.sleep(Math.max(0, record.endAtMs - clock.nowMs()), cancel.signal).then(async () => {
      if (cancel.signal.aborted || records.get(record.id) !== record) return;
      log(`${record.id}: its time is over`);
      await (record.request.onTimeout === "pause" ? pause(record.id) : kill(record.id)).catch(
        (error: Error) => log(`${record.id}: ${error.message}`),
      );
    });
  };

  const refuseTooLong = (timeoutMs: number) => {
    if (timeoutMs <= plan.maxLifeMs) return;
    throw new ApiError(400, `Timeout cannot be greater than ${plan.maxLifeMs / 3_600_000} hours`);
  };

  return {
    find,
    kill,
    pause,
    all: () => records.values(),
    findRunning: (sandboxId) => {
      const record = records.get(sandboxId);
      return record?.state === "running" ? record : null;
    },

    async create(request) {
      refuseTooLong(request.timeoutMs);
      if (!gate.admit(clock.nowMs())) throw new ApiError(429, "Rate limit exceeded, please try again later.");
      refuseIfFull();
      starting += 1;
      const record = newRecord(request, shares.take(cpuCount));
      try {
        await keeper.create(record.id, {
          cpus: record.cpus,
          diskMib: DISK_MIB_OF_SANDBOX,
          accessToken: record.accessToken,
          environment: request.environment,
        });
      } catch (error) {
        shares.giveBack(record.cpus);
        throw new ApiError(500, `Failed to place sandbox: ${(error as Error).message}`);
      } finally {
        starting -= 1;
      }
      record.startedAtMs = clock.nowMs();
      records.set(record.id, record);
      scheduleEnd(record, record.startedAtMs + request.timeoutMs);
      return record;
    },

    setTimeout(sandboxId, timeoutMs) {
      const record = findSettled(sandboxId);
      if (record.state === "paused") throw sandboxNotFound(sandboxId);
      scheduleEnd(record, clock.nowMs() + timeoutMs);
    },

    async connect(sandboxId, timeoutMs) {
      refuseTooLong(timeoutMs);
      const record = findSettled(sandboxId);
      const endAtMs = clock.nowMs() + timeoutMs;
      if (record.state === "running") {
        if (endAtMs > record.endAtMs) scheduleEnd(record, endAtMs);
        return { record, resumed: false };
      }
      refuseIfFull();
      starting += 1;
      try {
        await change(record, "resuming", () => keeper.thaw(record.id));
      } finally {
        starting -= 1;
      }
      record.state = "running";
      record.startedAtMs = clock.nowMs();
      scheduleEnd(record, endAtMs);
      return { record, resumed: true };
    },

    forget(sandboxId) {
      const record = records.get(sandboxId);
      if (record === undefined) return;
      log(`${sandboxId}: its first process died`);
      remove(record);
    },

    async killAll() {
      await Promise.all([...records.keys()].map(kill));
    },
  };
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
