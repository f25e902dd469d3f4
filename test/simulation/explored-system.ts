/** A small pool whose processes move only when they are told to. */
import { createLeaseSource } from "../../functions/pool/lease-source.ts";
import type { Table } from "../../functions/pool/ports.ts";
import { plans, poolSettings } from "../../functions/pool/settings.ts";
import { readSlotRow, type SlotRow, slotKey } from "../../functions/pool/slot-row.ts";
import { type SweepContext, sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import { createMemoryTable } from "../pool/memory-table.ts";
import { createExploredCloud } from "./explored-cloud.ts";
import { fenceViolation } from "./fences.ts";

export interface SystemOptions {
  readonly slots: number;
  /** Each leases a worker once for each of its lives, uses it, and gives it back. */
  readonly handlers: number;
  readonly lives: number;
  /** Passes, each by a process of its own, all at once. */
  readonly sweeps: number;
  /** How many of these may happen, wherever they may. */
  readonly crashes: number;
  readonly lostAnswers: number;
  /** Creations without an answer, whose sandbox lands later or never. */
  readonly ambiguous: number;
  /** Times that more time passes than any lease lasts. */
  readonly passings: number;
  /** Slots that have a free worker in the beginning. */
  readonly ready: number;
  /** How long a handler waits for a worker; by default it has given up when time passes. */
  readonly patienceMs?: number;
}

export interface System {
  /** What may happen next. */
  choices(): string[];
  take(choice: string): Promise<void>;
  /** All that what may happen later depends on. */
  state(): string;
  /** The table and the provider alone. */
  outside(): string;
  /** Lets healthy sweeps pass over what is left; nothing may remain. */
  heal(): Promise<void>;
  readonly violations: string[];
}

/** A call that waits to happen. */
interface Call {
  readonly what: string;
  /** Does it, and returns what happens when the answer arrives. */
  readonly happen: (how: string) => () => void;
  readonly variants: readonly string[];
}

interface Process {
  readonly name: string;
  isAlive: boolean;
  isDone: boolean;
  lives: number;
  ids: number;
  /** What it was told, folded into one number. */
  told: number;
  readonly calls: Call[];
  sleepers: { readonly atMs: number; readonly wake: () => void }[];
  holding: { readonly token: number; readonly slot: number } | null;
}

const startMs = 1_800_000_000_000;
const passingMs = 200_000;
const poolId = "p";

export async function createSystem(options: SystemOptions): Promise<System> {
  const violations: string[] = [];
  const settings = poolSettings(plans.hobby, {
    supervisorVersion: "v1",
    slots: options.slots,
  });
  const truth = createMemoryTable(
    async () => {},
    (verb, sk, after, before) => {
      const violation = sk.startsWith("S#") ? fenceViolation(verb, before, after) : null;
      if (violation !== null) violations.push(violation);
    },
  );
  const budget = { ...options };
  let nowMs = startMs;
  const rowOf = (slot: number): SlotRow | null => {
    const stored = truth.rows().find(({ sk }) => sk === slotKey(slot).sk);
    return stored === undefined ? null : readSlotRow(stored);
  };
  /** Who does all that a holder must: his lease is good, so nobody may take the worker from him. */
  const isGood = (name: string) => {
    const process = processes.find((one) => one.name === name);
    const row = process?.holding ? rowOf(process.holding.slot) : null;
    return (
      process?.isAlive === true &&
      row?.state === "leased" &&
      row.fence === process.holding?.token &&
      (row.leaseUntilMs ?? 0) > nowMs
    );
  };
  const cloud = createExploredCloud(options.slots, isGood, (what) => violations.push(what));
  const processes: Process[] = [];

  function call<T>(process: Process, what: string, variants: readonly string[], effect: (how: string) => T) {
    return new Promise<T>((resolve, reject) => {
      process.calls.push({
        what,
        variants,
        happen: (how) => {
          try {
            const answer = effect(how);
            return () => {
              process.told = fold(process.told, what, answer);
              resolve(answer);
            };
          } catch (error) {
            return () => {
              process.told = fold(process.told, what, String(error));
              reject(error);
            };
          }
        },
      });
    });
  }

  /** Reads and writes of runs don't matter here: they happen at once. Nor do hints: any creation is admitted. */
  function tableOf(process: Process): Table {
    const now = <T>(promise: Promise<T>) => promise;
    return {
      get: (key) =>
        key.pk === "runs" ? now(truth.get(key)) : call(process, "get", [""], () => peek(key.pk, key.sk)[0]),
      query: (pk, prefix) =>
        pk === "runs" ? now(truth.query(pk, prefix)) : call(process, "query", [""], () => peek(pk)),
      update: (key, expression, values) => {
        if (key.pk === "runs") return now(truth.update(key, expression, values));
        const isHint = !key.sk.startsWith("S#"); // the pace, and signs of waiting
        if (isHint) return now(Promise.resolve({ kind: "applied", row: {} } as const));
        const write = () => truth.updateNow(key, expression, values);
        const what = `${expression.name} ${key.sk}`;
        return call(process, what, ["", "lost"], (how) => {
          const outcome = write();
          return how === "lost" ? null : outcome;
        }).then((outcome) => {
          if (outcome !== null) return outcome;
          return call(process, `${what} again`, [""], () => {
            const second = write();
            return second.kind === "refused" ? { ...second, retried: true } : second;
          });
        });
      },
    };
  }

  const peek = (pk: string, sk?: string) =>
    truth
      .rows()
      .filter((row) => row.pk === pk && (sk === undefined || row.sk === sk))
      .sort((one, other) => (String(one.sk) < String(other.sk) ? -1 : 1));

  function contextOf(process: Process): SweepContext {
    const port = <T>(what: string, variants: readonly string[], effect: (how: string) => T) =>
      call(process, what, variants, effect);
    return {
      table: tableOf(process),
      clock: {
        nowMs: () => nowMs,
        sleep: (ms, signal) =>
          new Promise((wake) => {
            if (signal?.aborted) return wake();
            signal?.addEventListener("abort", () => wake());
            process.sleepers.push({ atMs: nowMs + Math.max(1, ms), wake });
          }),
      },
      newId: () => `${process.name}.${process.ids++}`,
      random: () => 0.5,
      settings,
      poolId: async () => poolId,
      workers: {
        create: (order) => port(`create ${order.slot}`, ["", "ambiguous"], (how) => cloud.create(order, how)),
        attach: ({ sandboxId }) => ({
          async *execute(_chunk, token, signal) {
            await port(`start ${sandboxId}`, [""], () => cloud.start(sandboxId, token, process.name));
            const end = await port(`end ${sandboxId}`, [""], () =>
              signal.aborted ? "cancelled" : cloud.end(sandboxId, process.name),
            );
            yield { kind: "summary", end };
          },
        }),
      },
      sandboxes: {
        create: () => Promise.reject(new Error("the pool creates through the factory")),
        kill: (id) => port(`kill ${id}`, [""], () => cloud.kill(id)),
        renew: (id) => port(`renew ${id}`, [""], () => cloud.renew(id)),
        list: () => port("list", [""], () => cloud.list()),
      },
    };
  }

  async function handle(process: Process): Promise<void> {
    const source = createLeaseSource(contextOf(process));
    for (; process.lives > 0; process.lives -= 1) {
      const signal = new AbortController().signal;
      const batch = source.forBatch({ runId: "r", batchId: process.name });
      const lease = await batch
        .acquire({ deadlineAtMs: nowMs + (options.patienceMs ?? 1_000), signal })
        .catch(faultOnly);
      if (lease === null) continue;
      process.holding = { token: lease.fencingToken, slot: lease.slot };
      let end = "cut";
      try {
        for await (const event of lease.execute({ chunkId: "c", deadlineMs: 1, programs: [] }, signal))
          if (event.kind === "summary") end = event.end;
      } catch (error) {
        faultOnly(error);
      }
      process.holding = null;
      await lease.release(end === "completed" ? "healthy" : "broken");
    }
    await source.settled();
  }

  function begin(name: string, lives: number, run: (process: Process) => Promise<unknown>): Process {
    const process: Process = {
      name,
      isAlive: true,
      isDone: false,
      lives,
      ids: 0,
      told: 0,
      calls: [],
      sleepers: [],
      holding: null,
    };
    processes.push(process);
    run(process).then(
      () => {
        process.isDone = true;
      },
      (error: unknown) => violations.push(`a bug: ${(error as Error)?.stack ?? error}`),
    );
    return process;
  }

  // Passes go on after any time that passes: they were frozen.
  const sweep = (process: Process) => sweepPool(contextOf(process), { deadlineAtMs: nowMs + 10 * passingMs });
  for (let slot = 0; slot < options.ready; slot += 1) await placeReady(truth, cloud, slot, startMs);
  for (let at = 0; at < options.handlers; at += 1) begin(`h${at}`, options.lives, handle);
  for (let at = 0; at < options.sweeps; at += 1) begin(`s${at}`, 1, sweep);
  await tick();

  const isBusy = (process: Process) => process.isAlive && process.calls.length > 0;

  function wakeAll(): void {
    nowMs += passingMs;
    for (const process of processes) {
      const due = process.sleepers;
      process.sleepers = [];
      if (process.isAlive) for (const { wake } of due) wake();
    }
  }

  const system: System = {
    violations,
    choices() {
      const found: string[] = [];
      for (const process of processes) {
        const [next] = process.calls;
        if (!process.isAlive || next === undefined) continue;
        for (const how of next.variants) {
          if (how === "lost" && budget.lostAnswers === 0) continue;
          if (how === "ambiguous" && budget.ambiguous === 0) continue;
          found.push(`${process.name}/${how}/${next.what}`);
        }
        if (budget.crashes > 0) found.push(`${process.name}/crash/`);
      }
      for (const flight of cloud.flights()) found.push(`cloud/land/${flight}`, `cloud/never/${flight}`);
      const isAwaited = processes.some((one) => one.isAlive && !one.isDone) || found.length > 0;
      // A creation that is under way lands before its claim is over, or never does: the provider fences nothing.
      const isCreating = processes.some((one) => one.isAlive && one.calls[0]?.what.startsWith("create"));
      if (budget.passings > 0 && isAwaited && !isCreating && cloud.flights().length === 0)
        found.push("time/passes/");
      return found;
    },
    async take(choice) {
      const [who = "", how = "", what = ""] = choice.split("/");
      if (who === "time") {
        budget.passings -= 1;
        wakeAll();
      } else if (who === "cloud") {
        cloud.land(what, how === "land");
      } else {
        const process = processes.find(({ name }) => name === who);
        if (process === undefined) throw new Error(`no process ${who}`);
        if (how === "crash") {
          budget.crashes -= 1;
          process.isAlive = false;
          cloud.disconnect(process.name);
        } else {
          if (how === "lost") budget.lostAnswers -= 1;
          if (how === "ambiguous") budget.ambiguous -= 1;
          process.calls.shift()?.happen(how)();
        }
      }
      await tick();
    },
    outside: () => `${JSON.stringify(peek("pool"))}${cloud.state()}${nowMs - startMs}`,
    state() {
      const inner = processes.map((one) =>
        !one.isAlive ? "dead" : one.isDone ? "done" : `${one.told} ${one.lives} ${one.calls.length}`,
      );
      const { crashes, lostAnswers, ambiguous, passings } = budget;
      return `${system.outside()}${inner.join("|")}${crashes}${lostAnswers}${ambiguous}${passings}`;
    },
    async heal() {
      for (let pass = 0; pass < 4; pass += 1) {
        wakeAll();
        await tick();
        for (const process of processes) await finish(process);
        const healer = begin(`heal${pass}`, 1, sweep);
        await tick();
        await finish(healer);
      }
      if (cloud.count() > 0) violations.push("a sandbox is left in the end");
      for (const { st } of peek("pool"))
        if (st !== undefined && st !== "empty") violations.push(`a slot stays ${st}`);
    },
  };

  /** Lets all its calls happen, as long as one may believe that it comes to an end. */
  async function finish(process: Process): Promise<void> {
    for (let calls = 0; isBusy(process); calls += 1) {
      if (calls > 1_000) return void violations.push("a process without end");
      process.calls.shift()?.happen("")();
      await tick();
    }
  }
  return system;
}

async function placeReady(
  truth: Table,
  cloud: ReturnType<typeof createExploredCloud>,
  slot: number,
  nowMs: number,
): Promise<void> {
  const sandboxId = cloud.place(slot, 1);
  const columns = {
    "#st": "st",
    "#f": "f",
    "#gen": "gen",
    "#sb": "sb",
    "#acc": "acc",
    "#bo": "bo",
    "#ttl": "ttl",
    "#max": "max",
    "#ver": "ver",
  };
  const update = `SET ${Object.keys(columns)
    .map((name) => `${name} = :${name.slice(1)}`)
    .join(", ")}`;
  await truth.update(
    slotKey(slot),
    { name: "place", update, clauses: [], columns },
    {
      ":st": "ready",
      ":f": 1,
      ":gen": 1,
      ":sb": sandboxId,
      ":acc": "a",
      ":bo": nowMs - 100_000,
      ":ttl": nowMs + 600_000,
      ":max": nowMs + 3_000_000,
      ":ver": "v1",
    },
  );
}

function faultOnly(error: unknown): null {
  if (error instanceof Fault) return null;
  throw error;
}

/** Folds what a process was told into a number of 53 bits. */
function fold(before: number, what: string, answer: unknown): number {
  const text = `${what}${JSON.stringify(answer)}`;
  let [one, two] = [before >>> 0, Math.floor(before / 2 ** 21) >>> 0];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 2_654_435_761);
    two = Math.imul(two ^ code, 1_597_334_677);
  }
  one = Math.imul(one ^ (one >>> 16), 2_246_822_507) ^ Math.imul(two ^ (two >>> 13), 3_266_489_909);
  two = Math.imul(two ^ (two >>> 16), 2_246_822_507) ^ Math.imul(one ^ (one >>> 13), 3_266_489_909);
  return 4_294_967_296 * (2_097_151 & two) + (one >>> 0);
}

/** Until no promise can go on. */
function tick(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
