/** The app with scripted workers behind it. */
import { createApp } from "../../functions/api/app.ts";
import { hashApiKey } from "../../functions/api/authentication.ts";
import type { AdmitBatch } from "../../functions/api/batch-admission.ts";
import type { CancelBatch } from "../../functions/api/batches-route.ts";
import type { ProbeReadiness } from "../../functions/api/health-routes.ts";
import type { LogEvent } from "../../functions/api/log.ts";
import type { ProblemBody } from "../../functions/api/problem.ts";
import type { RunService } from "../../functions/pool/runs/run-service.ts";
import type { GradeBatch } from "../../functions/rewards/batch.ts";
import { createBatchGrader } from "../../functions/rewards/batch-grader.ts";
import { hostBatches, type RequestHost } from "../../functions/rewards/hosted-batches.ts";
import {
  createScriptedWorkers,
  type ScriptedWorkers,
  type ScriptedWorkersOptions,
} from "../rewards/scripted-workers.ts";
import { createVirtualClock, type VirtualClock } from "../rewards/virtual-clock.ts";

export const apiKey = "a-key-for-tests";

export interface TestApp {
  readonly app: ReturnType<typeof createApp>;
  readonly workers: ScriptedWorkers;
  readonly clock: VirtualClock;
  readonly logged: Parameters<LogEvent>[0][];
}

export interface TestAppOptions extends ScriptedWorkersOptions {
  readonly gradeBatch?: GradeBatch;
  readonly probeReadiness?: ProbeReadiness;
  readonly cancelBatch?: CancelBatch;
  readonly signedCallers?: boolean;
  /** When the platform ends requests, counted from now. Default: never. */
  readonly endsInMs?: number;
}

export function createTestApp(options: TestAppOptions = {}): TestApp {
  const clock = createVirtualClock();
  const workers = createScriptedWorkers(options);
  const logged: TestApp["logged"] = [];
  let chunks = 0;
  const graded = createBatchGrader({
    workers,
    clock,
    newId: () => `chunk-${++chunks}`,
    config: { maxWorkers: 2 },
  });
  const admitBatch: AdmitBatch = async ({ runId }) =>
    runId === "default"
      ? { kind: "admitted", gradeBatch: options.gradeBatch ?? graded }
      : { kind: "run_not_found" };
  const host = options.endsInMs === undefined ? null : hostThatEndsIn(options.endsInMs, clock);
  const app = createApp({
    apiKeyHashes: [hashApiKey("an-older-key"), hashApiKey(apiKey)],
    admitBatch: host === null ? admitBatch : hostBatches(admitBatch, host, clock),
    runs: noRuns,
    ...(options.signedCallers && { signedCallers: true, apiKeyHashes: [] }),
    cancelBatch: options.cancelBatch ?? (async () => ({ kind: "batch_not_found" })),
    probeReadiness: options.probeReadiness ?? (async () => ({ isReady: true, checks: { table: "ok" } })),
    config: { maxMemoryMib: 448, slots: 20, costUsd: () => 0 },
    clock,
    log: (event) => logged.push(event),
  });
  return { app, workers, clock, logged };
}

function hostThatEndsIn(ms: number, clock: VirtualClock): RequestHost {
  const endsAtMs = clock.nowMs() + ms;
  return {
    timeLeftMs: () => endsAtMs - clock.nowMs(),
    noteRun: () => {},
    reportBatch: () => {},
    reportRefusal: () => {},
  };
}

/** For tests that are not about runs. */
export const noRuns: RunService = {
  start: () => Promise.reject(new Error("not called")),
  beat: async () => ({ kind: "run_not_found" }),
  list: async () => [],
  read: async () => null,
  finish: async () => ({ kind: "run_not_found" }),
};

export const jsonHeaders = { authorization: `Bearer ${apiKey}`, "content-type": "application/json" };

/** Sends a body that is JSON, or is meant not to be. */
export function post(
  { app }: TestApp,
  body: unknown,
  headers: Record<string, string> = {},
): Response | Promise<Response> {
  const isRaw = typeof body === "string" || body instanceof Uint8Array;
  return app.request("/v1/rewards", {
    method: "POST",
    headers: { ...jsonHeaders, ...headers },
    body: isRaw ? body : JSON.stringify(body),
  });
}

/** A request that is right; tests change one thing in it. */
export function rightRequest() {
  return {
    tasks: { sum: { test_cases: [{ input: "1", output: "1" }] } } as Record<string, unknown>,
    samples: [{ task: "sum", completion: "```python\nright\n```" }] as unknown[],
    options: {} as Record<string, unknown>,
  };
}

export async function readProblem(answer: Response): Promise<ProblemBody> {
  return (await answer.json()) as ProblemBody;
}
