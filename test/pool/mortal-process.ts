/** A process that may crash or freeze at every call it makes to the outside. */
import type { Sandboxes, Table, WorkerFactory } from "../../functions/pool/ports.ts";
import type { Clock } from "../../functions/rewards/ports.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export interface Odds {
  /** Of crashing before, and again after, each call. */
  readonly crash: number;
  /** Of standing still for up to `freezeMs` while it waits for an answer, which is where containers are frozen. */
  readonly freeze: number;
  readonly freezeMs: number;
  /** How far the process's clock may be off, either way. */
  readonly skewMs: number;
}

export interface MortalProcess {
  readonly clock: Clock;
  isAlive(): boolean;
  /** Alive, and not frozen for long enough to have extended its leases since. */
  isWell(): boolean;
  /** Resolves when it has crashed. */
  readonly crashed: Promise<void>;
  table(table: Table): Table;
  sandboxes(sandboxes: Sandboxes): Sandboxes;
  workers(workers: WorkerFactory): WorkerFactory;
}

const onTimeAfterMs = 25_000;

const never = new Promise<never>(() => {});

export function startProcess(time: VirtualClock, random: () => number, odds: Odds): MortalProcess {
  const skewMs = Math.round((random() * 2 - 1) * odds.skewMs);
  let alive = true;
  let frozenUntilMs = Number.NEGATIVE_INFINITY;
  let die = () => {};
  const crashed = new Promise<void>((resolve) => {
    die = () => {
      alive = false;
      resolve();
    };
  });

  /** Goes on only in a process that is alive, and when it is thawed. */
  async function goOn(): Promise<void> {
    while (alive && time.nowMs() < frozenUntilMs) await time.sleep(frozenUntilMs - time.nowMs());
    if (!alive) await never;
  }

  async function call<T>(effect: () => Promise<T>): Promise<T> {
    await goOn();
    if (random() < odds.crash) die();
    await goOn();
    const outcome = await effect().then(
      (value) => () => value,
      (error: unknown) => () => {
        throw error;
      },
    );
    if (random() < odds.freeze) frozenUntilMs = time.nowMs() + random() * odds.freezeMs;
    if (random() < odds.crash) die();
    await goOn();
    return outcome();
  }

  return {
    isAlive: () => alive,
    isWell: () => alive && time.nowMs() > frozenUntilMs + onTimeAfterMs,
    crashed,
    clock: {
      nowMs: () => time.nowMs() + skewMs,
      sleep: async (ms, signal) => {
        await time.sleep(ms, signal);
        await goOn();
      },
    },
    table: (table) => ({
      get: (key) => call(() => table.get(key)),
      query: (pk, prefix) => call(() => table.query(pk, prefix)),
      update: (key, expression, values) => call(() => table.update(key, expression, values)),
    }),
    sandboxes: (sandboxes) => ({
      create: (meta, ttlMs, signal) => call(() => sandboxes.create(meta, ttlMs, signal)),
      kill: (id) => call(() => sandboxes.kill(id)),
      renew: (id, ttlMs) => call(() => sandboxes.renew(id, ttlMs)),
      list: (poolId) => call(() => sandboxes.list(poolId)),
    }),
    workers: (workers) => ({
      create: (order, signal) => call(() => workers.create(order, signal)),
      attach: (worker) => {
        const executor = workers.attach(worker);
        return {
          async *execute(chunk, fencingToken, signal) {
            for await (const event of executor.execute(chunk, fencingToken, signal)) {
              await goOn();
              yield event;
            }
          },
        };
      },
    }),
  };
}
