/** Runs, as the JSON of the interface. */

import { type RunRow, runExpiresAtMs, runState } from "../pool/runs/run-row.ts";
import type { RunStart } from "../pool/sweep/start-run.ts";

type Json = Readonly<Record<string, unknown>>;

export interface EncodingOptions {
  readonly nowMs: number;
  /** Dollars for so much worker time. */
  readonly costUsd: (workerSeconds: number) => number;
}

export function encodeRegistration(start: Extract<RunStart, { kind: "started" }>): Json {
  return { ...encodeHeartbeat(start.run), workers_ready: start.workersReady };
}

export function encodeHeartbeat(run: RunRow): Json {
  return { run_id: run.runId, expires_at: new Date(runExpiresAtMs(run)).toISOString() };
}

export function encodeRun(run: RunRow, { nowMs, costUsd }: EncodingOptions): Json {
  const { runId, name } = run;
  return { run_id: runId, name, state: runState(run, nowMs), totals: encodeTotals(run, costUsd) };
}

export function encodeFinish(
  run: RunRow,
  remainingSandboxes: readonly string[],
  { costUsd }: EncodingOptions,
): Json {
  return {
    run_id: run.runId,
    remaining_sandboxes: remainingSandboxes,
    totals: encodeTotals(run, costUsd),
  };
}

function encodeTotals({ totals }: RunRow, costUsd: EncodingOptions["costUsd"]): Json {
  const workerSeconds = (totals.busyMs + totals.idleMs + totals.startMs) / 1_000;
  return {
    batches: totals.batches,
    samples: totals.samples,
    verdicts: totals.verdicts,
    faults: totals.faults,
    retries: totals.retries,
    workers_created: totals.workersCreated,
    worker_seconds: workerSeconds,
    cost_usd: costUsd(workerSeconds),
  };
}
