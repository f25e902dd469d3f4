/**
 * Grades a batch: plan, dispatch, assemble.
 */
import { describeResult, judgeOutcome, type OutputRoom } from "./assembly.ts";
import type { Batch, BatchAnswer, BatchHooks, GradeBatch, SampleResult, Usage } from "./batch.ts";
import { type Board, createBoard } from "./board.ts";
import { type DispatchReport, dispatch } from "./dispatch.ts";
import { type Plan, planBatch } from "./plan.ts";
import type { Clock, WorkerSource } from "./ports.ts";

export interface BatchGraderDeps {
  readonly workers: WorkerSource;
  readonly clock: Clock;
  /** Makes chunk ids; never the same one twice. */
  readonly newId: () => string;
  readonly config: BatchGraderConfig;
  /** What is to be done with the cost of a graded batch while its workers go back. The answer waits for both. */
  readonly whileWorkersLeave?: (usage: Usage) => Promise<void>;
}

export interface BatchGraderConfig {
  /** Workers that one batch may hold at once. */
  readonly maxWorkers: number;
}

/** An answer with every output must fit into memory: what is beyond is graded all the same, and not kept. */
const KEPT_OUTPUT_CHARACTERS = 32 * 1024 * 1024;

/**
 * Makes the service that grades batches.
 *
 * @example
 * const gradeBatch = createBatchGrader({ workers, clock, newId: randomUUID, config: { maxWorkers: 2 } });
 * const { rewards } = await gradeBatch(batch, { signal });
 */
export function createBatchGrader(deps: BatchGraderDeps): GradeBatch {
  if (!Number.isInteger(deps.config.maxWorkers) || deps.config.maxWorkers < 1) {
    throw new Error(`maxWorkers must be a positive integer, not ${deps.config.maxWorkers}`);
  }
  return (batch, hooks) => gradeBatch(deps, batch, hooks);
}

async function gradeBatch(deps: BatchGraderDeps, batch: Batch, hooks: BatchHooks): Promise<BatchAnswer> {
  const { clock } = deps;
  const startedAtMs = clock.nowMs();
  const plan = await planBatch(batch);
  const ledger = createLedger(batch, hooks);
  for (const { sampleIndex, reason } of plan.withoutProgram) {
    const total = batch.samples[sampleIndex]?.task.inputs.length ?? 0;
    ledger.record(sampleIndex, { kind: "no_program", reward: 0, reason, total });
  }
  const board = createBoard(plan.programs, (program, result) => {
    const sampleResult = describeResult(program, result);
    for (const sampleIndex of program.sampleIndexes) ledger.record(sampleIndex, sampleResult);
  });
  const room: OutputRoom | null = batch.keepOutput ? { leftCharacters: KEPT_OUTPUT_CHARACTERS } : null;
  const report = await dispatch({
    board,
    workers: deps.workers,
    clock,
    newId: deps.newId,
    judge: (program, caseIndex, outcome) => judgeOutcome(program, caseIndex, outcome, room),
    deadlineAtMs: startedAtMs + batch.deadlineMs,
    maxWorkers: deps.config.maxWorkers,
    signal: hooks.signal,
    ...(hooks.timeIsUp && { timeIsUp: hooks.timeIsUp }),
  });
  const usage = describeUsage({ board, plan, report, startedAtMs, endedAtMs: clock.nowMs() });
  try {
    await deps.whileWorkersLeave?.(usage);
  } finally {
    await report.released;
  }
  return { rewards: ledger.rewards(), usage };
}

/** Collects one result per sample, each once. */
function createLedger(batch: Batch, hooks: BatchHooks) {
  const total = batch.samples.length;
  const rewards = new Array<number | null | undefined>(total).fill(undefined);
  let done = 0;
  return {
    record(index: number, result: SampleResult) {
      if (rewards[index] !== undefined) throw new Error(`sample ${index} has two results`);
      rewards[index] = result.reward;
      done += 1;
      hooks.onSample?.(index, result);
    },
    rewards(): (number | null)[] {
      if (done !== total) throw new Error(`${total - done} samples have no result`);
      return rewards as (number | null)[];
    },
  };
}

function describeUsage(facts: {
  readonly board: Board;
  readonly plan: Plan;
  readonly report: DispatchReport;
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}): Usage {
  const { board, plan, report, startedAtMs, endedAtMs } = facts;
  const wallMs = endedAtMs - startedAtMs;
  const waitedMs = report.firstWorkerAtMs === null ? wallMs : report.firstWorkerAtMs - startedAtMs;
  return {
    wallMs,
    queueMs: plan.programs.length === 0 ? 0 : waitedMs,
    workers: report.workerIds.size,
    workerSeconds: report.heldMs / 1000,
    workersCreated: report.workersCreated,
    retries: board.retries(),
    programsRun: board.programsRun(),
    duplicates: plan.duplicates,
  };
}
