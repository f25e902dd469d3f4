/** Containers of the product over one embedded table, in real time, with workers that run what they are told to. */
import { setMaxListeners } from "node:events";
import { createApp } from "../../functions/api/app.ts";
import { hashApiKey } from "../../functions/api/authentication.ts";
import type { PoolLease } from "../../functions/pool/held-lease.ts";
import type { LeaseSource } from "../../functions/pool/lease-source.ts";
import type { Table } from "../../functions/pool/ports.ts";
import type { Chunk, WorkerEvent } from "../../functions/rewards/ports.ts";
import { createRunGrader } from "../../functions/rewards/run-grading.ts";
import { openDynalite } from "../pool/dynalite-table.ts";
import { testSettings } from "../pool/test-pool.ts";
import { apiKey, noRuns } from "./test-app.ts";

export type KeyedWorld = Awaited<ReturnType<typeof createKeyedWorld>>;

export async function createKeyedWorld() {
  const dynalite = await openDynalite();
  const table = await dynalite.fresh();
  /** How far the clocks of all containers were moved. */
  let aheadMs = 0;
  const ran: string[] = [];
  const reported: unknown[] = [];
  let ids = 0;

  /** A container of its own; `kill` is its sudden end. */
  function container() {
    const life = new AbortController();
    setMaxListeners(0, life.signal); // all who sleep in it
    /** Nothing that a dead process calls is sent, and no answer reaches it. */
    const alive = async <T>(call: () => Promise<T>): Promise<T> => {
      const answer = life.signal.aborted ? null : await call();
      return answer === null || life.signal.aborted ? new Promise<never>(() => {}) : answer;
    };
    const mortal: Table = {
      get: (key) => alive(async () => ({ row: await table.get(key) })).then(({ row }) => row),
      query: (...call) => alive(() => table.query(...call)),
      update: (...call) => alive(() => table.update(...call)),
    };
    const clock = {
      nowMs: () => Date.now() + aheadMs,
      sleep: (ms: number, signal?: AbortSignal) => wait(ms, signal, life.signal),
    };
    const newId = () => `id-${ids++}`;
    const pool = { table: mortal, clock, newId, random: Math.random, settings: testSettings() };
    const workers = createWorkers(ran);
    const costUsd = () => 0;
    const report = (fault: unknown) => void reported.push(fault);
    const grader = createRunGrader({ leases: workers.leases, pool, newId, costUsd, report });
    const app = createApp({
      apiKeyHashes: [hashApiKey(apiKey)],
      admitBatch: grader.admitBatch,
      runs: noRuns,
      cancelBatch: async () => ({ kind: "batch_not_found" }),
      probeReadiness: async () => ({ isReady: true, checks: {} }),
      config: { maxMemoryMib: 384, slots: 20, costUsd },
      clock,
      log: () => {},
    });
    return { app, holdAt: workers.holdAt, kill: () => life.abort() };
  }

  return {
    container,
    table,
    reported,
    /** Every case that a worker began, in order. */
    ran,
    moveClocks(ms: number) {
      aheadMs += ms;
    },
    close: dynalite.close,
  };
}

/** Sleeps in real time; a dead process never wakes, and holds no timer. */
function wait(ms: number, signal: AbortSignal | undefined, death: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (death.aborted) return;
    if (signal?.aborted) return resolve();
    const leave = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", wake);
      death.removeEventListener("abort", leave);
    };
    const wake = () => {
      leave();
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal?.addEventListener("abort", wake);
    death.addEventListener("abort", leave);
  });
}

/** Workers that print their case's input, each with measures of its own. */
function createWorkers(ran: string[]) {
  let held = Number.POSITIVE_INFINITY;
  let reachHold = () => {};
  let begun = 0;

  async function* execute(chunk: Chunk): AsyncIterable<WorkerEvent> {
    for (const { id, source, inputs } of chunk.programs) {
      for (const [caseIndex, input] of inputs.entries()) {
        begun += 1;
        if (begun > held) {
          reachHold();
          await new Promise<never>(() => {});
        }
        ran.push(`${source.trim()} on ${input}`);
        yield { kind: "case_started", programId: id, caseIndex };
        const measures = { wallMs: Math.random() * 30, cpuMs: Math.random() * 20, peakRssKib: 9_000 + begun };
        const end = { kind: "exited", exitCode: 0 } as const;
        const outcome = { end, stdout: input, stderrTail: "", ...measures };
        yield { kind: "case_ended", programId: id, caseIndex, outcome };
      }
    }
    yield { kind: "summary", end: "completed" };
  }

  const lease: PoolLease = {
    workerId: "w",
    slot: 0,
    fencingToken: 1,
    leasedAtMs: 0,
    created: false,
    lost: new AbortController().signal,
    execute,
    release: async () => {},
  };
  const leases: LeaseSource = {
    forBatch: () => ({ acquire: async () => lease, isWantedElsewhere: async () => false }),
    settled: async () => {},
    creationFault: () => null,
  };
  return {
    leases,
    /** Lets so many cases run, and stands still at the next; resolves when that is reached. */
    holdAt(cases: number): Promise<void> {
      held = cases;
      return new Promise((resolve) => {
        reachHold = resolve;
      });
    },
  };
}
