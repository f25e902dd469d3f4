/** Runs, as their trainers speak of them: registered, kept alive, looked at, finished. */
import { finishRun, type RunFinish } from "../sweep/finish-run.ts";
import type { SweepFault } from "../sweep/report.ts";
import { type RunStart, startRun } from "../sweep/start-run.ts";
import type { SweepContext } from "../sweep/sweep.ts";
import { beatRun, type Heartbeat } from "./heartbeat.ts";
import { getRun, listRuns } from "./read.ts";
import type { RunRow } from "./run-row.ts";
import type { RunWish } from "./run-wish.ts";

/** All throw the table's faults. */
export interface RunService {
  /** Registers a run, or says the same again, and creates its workers for up to 20 s; the sweep creates the rest. */
  start(runId: string, wish: RunWish): Promise<RunStart>;
  beat(runId: string): Promise<Heartbeat>;
  list(): Promise<RunRow[]>;
  read(runId: string): Promise<RunRow | null>;
  /** Takes up to half a minute; also throws `sandbox_unavailable`. */
  finish(runId: string): Promise<RunFinish>;
}

export interface RunServiceOptions {
  /** Told what went wrong where the answer only comes late or says less. */
  readonly report: (fault: unknown) => void;
  /** Aborted when the process must end: nothing more is created. */
  readonly signal: AbortSignal;
}

export function createRunService(ctx: SweepContext, { report, signal }: RunServiceOptions): RunService {
  const reportAll = (faults: readonly SweepFault[]) => {
    for (const fault of faults) report(fault);
  };
  return {
    async start(runId, wish) {
      const start = await startRun(ctx, runId, wish, { signal });
      if (start.kind === "started") reportAll(start.faults);
      return start;
    },
    beat: (runId) => beatRun(ctx, runId),
    list: () => listRuns(ctx),
    read: (runId) => getRun(ctx, runId),
    async finish(runId) {
      const finish = await finishRun(ctx, runId);
      if (finish.kind === "finished") reportAll(finish.faults);
      return finish;
    },
  };
}
