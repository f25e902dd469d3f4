/** Containers of the whole product over one table in memory and workers that obey their programs, in virtual time. */
import { setImmediate } from "node:timers/promises";
import { createApp } from "../../functions/api/app.ts";
import { hashApiKey } from "../../functions/api/authentication.ts";
import { cancelBatch } from "../../functions/pool/batches/cancel-batch.ts";
import { workersCostUsd } from "../../functions/pool/cost.ts";
import { createLeaseSource } from "../../functions/pool/lease-source.ts";
import type { Table, WorkerFactory, WorkerStopper } from "../../functions/pool/ports.ts";
import { createRunService } from "../../functions/pool/runs/run-service.ts";
import { sweepPool } from "../../functions/pool/sweep/sweep.ts";
import { Fault } from "../../functions/rewards/faults.ts";
import type { CaseOutcome, Chunk, Clock, ProgramJob, WorkerEvent } from "../../functions/rewards/ports.ts";
import { createRunGrader } from "../../functions/rewards/run-grading.ts";
import { createSweepWorld, type SweepWorldOptions } from "../pool/sweep-world.ts";
import { apiKey, jsonHeaders } from "./test-app.ts";

export type RunsWorld = ReturnType<typeof createRunsWorld>;

export interface Call {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

export function createRunsWorld(options: SweepWorldOptions = {}) {
  const pool = createSweepWorld(options);
  const { clock } = pool;
  const hands = createHands(clock);
  const reported: unknown[] = [];
  let containers = 0;
  let ids = 0;

  /** A container of its own. */
  function container({ table = pool.table }: { readonly table?: Table } = {}) {
    const name = `c${containers++}`;
    const base = pool.context({ table });
    const workers: WorkerFactory = { ...base.workers, attach: hands.attach };
    const ctx = { ...base, workers };
    const leases = createLeaseSource(ctx);
    const costUsd = (seconds: number) => workersCostUsd(seconds);
    const report = (fault: unknown) => void reported.push(fault);
    const newId = () => `${name}-${ids++}`;
    const grader = createRunGrader({ leases, pool: ctx, newId, costUsd, report });
    const app = createApp({
      apiKeyHashes: [hashApiKey(apiKey), hashApiKey("another-key")],
      admitBatch: grader.admitBatch,
      runs: createRunService(ctx, { report, signal: new AbortController().signal }),
      cancelBatch: (batchId) => cancelBatch({ ...ctx, stopper: hands.stopper }, batchId),
      probeReadiness: async () => ({ isReady: true, checks: {} }),
      config: { maxMemoryMib: 384, slots: pool.settings.slots, costUsd },
      clock,
      log: () => {},
    });
    const send = (path: string, { method = "GET", body, headers = {} }: Call = {}) =>
      Promise.resolve(
        app.request(path, {
          method,
          headers: { ...(body === undefined ? bare : jsonHeaders), ...headers },
          ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
        }),
      );
    return {
      app,
      stop: grader.stop,
      send,
      /** Sends a request and lets time pass until it is answered. */
      call: (path: string, how: Call = {}) => answer(send(path, how)),
      register: (runId: string, workers = 2) =>
        answer(send(`/v1/runs/${runId}`, { method: "PUT", body: { workers } })),
    };
  }

  async function answer(sent: Promise<Response>): Promise<Answer> {
    await letBodiesBeRead();
    const response = await clock.run(sent);
    const text = await clock.run(response.text());
    return { status: response.status, headers: response.headers, text, body: parse(text) };
  }

  return {
    ...pool,
    hands,
    reported,
    container,
    answer,
    sweepOnce: () => clock.run(sweepPool(pool.context(), { deadlineAtMs: clock.nowMs() + 50_000 })),
    /** Lets code run, and no time pass. */
    settle: letBodiesBeRead,
  };
}

const { "content-type": _, ...bare } = jsonHeaders;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests compare it, field by field
  readonly body: any;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A request's body takes some turns of the event loop, and no virtual time. */
async function letBodiesBeRead(): Promise<void> {
  for (let turn = 0; turn < 8; turn += 1) await setImmediate();
}

/** Workers: they do what their programs' sources say, and know fences. */
function createHands(clock: Clock) {
  interface Running {
    readonly sandboxId: string;
    readonly fence: number;
    readonly supersede: AbortController;
  }
  const running = new Set<Running>();
  const fences = new Map<string, number>();
  /** `executed 3` or `stopped 4`, with the fence. */
  const log: string[] = [];
  const hands = { running, log, confirms: true, stopsInMs: 0, attach, stopper: {} as WorkerStopper };

  function raise(sandboxId: string, fence: number): void {
    if (fence < (fences.get(sandboxId) ?? 0)) throw new Fault("supervisor_protocol", "stale_token");
    fences.set(sandboxId, fence);
    for (const chunk of running)
      if (chunk.sandboxId === sandboxId && chunk.fence < fence) chunk.supersede.abort();
  }

  function attach({ sandboxId }: { readonly sandboxId: string }) {
    return {
      async *execute(chunk: Chunk, fence: number, signal: AbortSignal): AsyncIterable<WorkerEvent> {
        raise(sandboxId, fence);
        log.push(`executed ${fence}`);
        const mine: Running = { sandboxId, fence, supersede: new AbortController() };
        running.add(mine);
        try {
          for (const job of chunk.programs) {
            yield* runProgram(clock, job, AbortSignal.any([signal, mine.supersede.signal]));
            if (signal.aborted) throw new Fault("cancelled", "The caller stopped the chunk.");
            if (mine.supersede.signal.aborted) {
              yield { kind: "summary", end: "superseded" };
              return;
            }
          }
          yield { kind: "summary", end: "completed" };
        } finally {
          running.delete(mine);
        }
      },
    };
  }

  hands.stopper = {
    async stop({ sandboxId }, fence) {
      raise(sandboxId, fence);
      if (hands.stopsInMs > 0) await clock.sleep(hands.stopsInMs);
      if (!hands.confirms) throw new Fault("worker_lost", "no answer");
      log.push(`stopped ${fence}`);
    },
  };
  return hands;
}

async function* runProgram(clock: Clock, job: ProgramJob, stop: AbortSignal): AsyncIterable<WorkerEvent> {
  for (const [caseIndex, input] of job.inputs.entries()) {
    yield { kind: "case_started", programId: job.id, caseIndex };
    if (job.source.startsWith("hang")) {
      if (!stop.aborted) await new Promise((resolve) => stop.addEventListener("abort", resolve));
      return;
    }
    if (job.source.startsWith("slow")) await clock.sleep(250, stop);
    if (stop.aborted) return;
    yield { kind: "case_ended", programId: job.id, caseIndex, outcome: outcomeOf(job.source, input) };
  }
}

function outcomeOf(source: string, input: string): CaseOutcome {
  const measures = { stderrTail: "", wallMs: 4, cpuMs: 3, peakRssKib: 9_000 };
  if (source.startsWith("crash")) return { end: { kind: "exited", exitCode: 3 }, stdout: "", ...measures };
  if (source.startsWith("starved"))
    return { end: { kind: "starved", detail: "0.1 s of 2 s" }, stdout: "", ...measures };
  return { end: { kind: "exited", exitCode: 0 }, stdout: input, ...measures };
}

/** A batch of programs on one task of two test cases. */
export function batchOf(sources: readonly string[], more: Readonly<Record<string, unknown>> = {}) {
  const test_cases = ["1", "2"].map((text) => ({ input: text, output: text }));
  const samples = sources.map((source) => ({ task: "t", completion: `\`\`\`python\n${source}\n\`\`\`` }));
  return { tasks: { t: { test_cases } }, samples, ...more };
}
