/** A process that may crash or freeze at every call that it makes to the outside. */
import type { Sandboxes, Table, WorkerFactory, WorkerStopper } from "../../functions/pool/ports.ts";
import type { Clock } from "../../functions/rewards/ports.ts";
import type { SimulatedTime } from "./simulated-time.ts";
import type { Watch } from "./watch.ts";
import type { ProcessOdds } from "./weather.ts";

export interface SimulatedProcess {
  readonly name: string;
  readonly clock: Clock;
  /** Of the supervisor that it was deployed with. */
  readonly supervisorVersion: string;
  /** Sets the clock so much off the right time, instead of what it was off before. */
  setClock(offMs: number): void;
  isClockRight(): boolean;
  isAlive(): boolean;
  /** Alive, and not frozen for long enough to have extended its leases since. */
  isWell(): boolean;
  /** Resolves when it has crashed. */
  readonly crashed: Promise<void>;
  /** Called when it has crashed; the function returned takes that back. */
  onCrash(act: () => void): () => void;
  crash(): void;
  table(table: Table): Table;
  sandboxes(sandboxes: Sandboxes): Sandboxes;
  workers(workers: WorkerFactory): WorkerFactory;
  stopper(stopper: WorkerStopper): WorkerStopper;
}

/** Leases are extended every 20 s, and a call takes its time. */
const onTimeAfterMs = 26_000;
/** A new one each time: one for all would keep alive whatever ever waited for it. */
function never(): Promise<never> {
  return new Promise<never>(() => {});
}

export function startProcess(
  world: { readonly time: SimulatedTime; readonly random: () => number; readonly watch: Watch },
  name: string,
  odds: ProcessOdds,
  supervisorVersion: string,
): SimulatedProcess {
  const { time, random, watch } = world;
  const skewMs = Math.round((random() * 2 - 1) * odds.skewMs);
  let wrongMs = 0;
  const onCrash = new Set<() => void>();
  let alive = true;
  let frozenUntilMs = Number.NEGATIVE_INFINITY;
  let resolveCrashed = () => {};
  const crashed = new Promise<void>((resolve) => {
    resolveCrashed = resolve;
  });

  function crash(): void {
    if (!alive) return;
    alive = false;
    watch.counts.crashes += 1;
    watch.note(name, "crashes");
    for (const act of onCrash) act();
    onCrash.clear();
    resolveCrashed();
  }

  function freeze(): void {
    // A process stands still as a whole: none of what waits in it goes on before the rest.
    frozenUntilMs = Math.max(frozenUntilMs, time.nowMs() + random() * odds.freezeMs);
    watch.counts.freezes += 1;
    watch.note(name, "freezes");
  }

  /** Goes on only in a process that is alive, and when it is thawed. */
  async function goOn(): Promise<void> {
    while (alive && time.nowMs() < frozenUntilMs) await time.sleep(frozenUntilMs - time.nowMs());
    if (!alive) await never();
  }

  async function call<T>(what: string, effect: () => Promise<T>): Promise<T> {
    if (!alive || time.nowMs() < frozenUntilMs) await goOn();
    const luck = random();
    const luckAfter = luck * 3 - 2; // within [0, 1) for the last third
    if (luck < odds.crash) {
      crash();
      return never();
    }
    const under = effect();
    if (luck < 2 * odds.crash) time.after(random() * 4_000 * random(), crash);
    let outcome: () => T;
    try {
      const value = await under;
      outcome = () => value;
    } catch (error) {
      outcome = () => {
        throw error;
      };
    }
    if (luckAfter >= 0 && luckAfter < 3 * odds.freeze) freeze();
    else if (luckAfter > 1 - 3 * odds.crash) crash();
    if (!alive || time.nowMs() < frozenUntilMs) await goOn();
    watch.note(name, what);
    return outcome();
  }

  return {
    name,
    crashed,
    crash,
    supervisorVersion,
    setClock(offMs) {
      wrongMs = offMs;
      watch.note(name, `has a clock that is ${offMs} ms off`);
      if (offMs !== 0) watch.counts.wrongClocks += 1;
    },
    isClockRight: () => wrongMs === 0,
    isAlive: () => alive,
    isWell: () => alive && time.nowMs() > frozenUntilMs + onTimeAfterMs,
    onCrash: (act) => {
      onCrash.add(act);
      return () => onCrash.delete(act);
    },
    clock: {
      nowMs: () => time.nowMs() + skewMs + wrongMs,
      sleep: async (ms, signal) => {
        await time.sleep(ms, signal);
        if (!alive || time.nowMs() < frozenUntilMs) await goOn();
      },
    },
    table: (table) => ({
      get: (key) => call("get", () => table.get(key)),
      query: (pk, prefix, from) => call("query", () => table.query(pk, prefix, from)),
      update: (key, expression, values) => call(expression.name, () => table.update(key, expression, values)),
    }),
    sandboxes: (sandboxes) => ({
      create: (meta, ttlMs, signal) => call("create", () => sandboxes.create(meta, ttlMs, signal)),
      kill: (id) => call(`kill ${id}`, () => sandboxes.kill(id)),
      renew: (id, ttlMs) => call(`renew ${id}`, () => sandboxes.renew(id, ttlMs)),
      list: (poolId) => call("list", () => sandboxes.list(poolId)),
    }),
    stopper: (stopper) => ({
      stop: (worker, token, signal) =>
        call(`stop ${worker.sandboxId}`, () => stopper.stop(worker, token, signal)),
    }),
    workers: (workers) => ({
      create: (order, signal) => call(`create for ${order.slot}`, () => workers.create(order, signal)),
      attach: (worker) => {
        const executor = workers.attach(worker);
        return {
          async *execute(chunk, fencingToken, signal) {
            if (!alive || time.nowMs() < frozenUntilMs) await goOn();
            for await (const event of executor.execute(chunk, fencingToken, signal)) {
              if (random() < odds.freeze) freeze();
              if (!alive || time.nowMs() < frozenUntilMs) await goOn();
              yield event;
            }
          },
        };
      },
    }),
  };
}
