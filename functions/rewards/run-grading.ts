/**
 * Grading for a run: the run is alive while its batch is graded, and what the batch did is added to its totals before
 * the batch's answer is complete. Workers are leased in the batch's own name.
 */

import type { VerdictKind } from "../grading/verdict.ts";
import type { LeaseSource } from "../pool/lease-source.ts";
import { enterRun } from "../pool/runs/enter.ts";
import { type BatchNote, createBatchNotes } from "../pool/runs/note-batch.ts";
import { defaultRunId, type RunRow, runExpiresAtMs, runLifeMs } from "../pool/runs/run-row.ts";
import type { SlotContext } from "../pool/slots/write.ts";
import type { BatchAnswer, GradeBatch, SampleResult } from "./batch.ts";
import { createBatchGrader } from "./batch-grader.ts";

export interface RunGraderDeps {
  readonly leases: LeaseSource;
  readonly pool: SlotContext;
  /** Makes ids that never come twice. */
  readonly newId: () => string;
}

/** Makes the service that grades batches of the run `default`. Throws what `GradeBatch` throws, and the table's faults. */
export function createRunGrader({ leases, pool, newId }: RunGraderDeps): GradeBatch {
  const noteBatch = createBatchNotes(pool);
  const enterDefault = rememberDefaultRun(pool);
  return async (batch, hooks) => {
    const maxWorkers = (await enterDefault()).workers;
    const workers = leases.forBatch({ runId: defaultRunId, batchId: newId(), runWorkers: maxWorkers });
    const gradeBatch = createBatchGrader({ workers, clock: pool.clock, newId, config: { maxWorkers } });
    const counts = countResults();
    const onSample = (index: number, result: SampleResult) => {
      counts.add(result);
      hooks.onSample?.(index, result);
    };
    const answer = await gradeBatch(batch, { ...hooks, onSample });
    await noteBatch(defaultRunId, describeNote(answer, counts));
    return answer;
  };
}

/** Enters the default run, which nobody can finish; asks the table again only when half of its life is over. */
function rememberDefaultRun(pool: SlotContext): () => Promise<RunRow> {
  let known: RunRow | null = null;
  return async () => {
    if (known !== null && runExpiresAtMs(known) > pool.clock.nowMs() + runLifeMs / 2) return known;
    const entry = await enterRun(pool, defaultRunId);
    if (entry.kind !== "entered") throw new Error("the default run refuses a batch");
    known = entry.run;
    return known;
  };
}

function countResults() {
  const verdicts: Partial<Record<VerdictKind, number>> = {};
  let faults = 0;
  return {
    verdicts: () => verdicts,
    faults: () => faults,
    add(result: SampleResult) {
      if (result.kind === "fault") faults += 1;
      if (result.kind !== "graded") return;
      for (const { verdict } of result.cases) verdicts[verdict.kind] = (verdicts[verdict.kind] ?? 0) + 1;
    },
  };
}

function describeNote(answer: BatchAnswer, counts: ReturnType<typeof countResults>): BatchNote {
  return {
    samples: answer.rewards.length,
    verdicts: counts.verdicts(),
    faults: counts.faults(),
    retries: answer.usage.retries,
    workersCreated: answer.usage.workersCreated,
    busyMs: answer.usage.workerSeconds * 1000,
  };
}
