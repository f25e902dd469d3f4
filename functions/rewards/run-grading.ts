/**
 * Grading for a run: the run is alive while its batch is graded, and what the batch did is added to its totals before
 * the batch's answer is complete. Workers are leased in the batch's own name.
 */

import type { VerdictKind } from "../grading/verdict.ts";
import type { LeaseSource } from "../pool/lease-source.ts";
import { enterRun } from "../pool/runs/enter.ts";
import { type BatchNote, createBatchNotes } from "../pool/runs/note-batch.ts";
import { defaultRunId } from "../pool/runs/run-row.ts";
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
  return async (batch, hooks) => {
    const entry = await enterRun(pool, defaultRunId);
    const maxWorkers = entry.kind === "entered" ? entry.run.workers : 1;
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
