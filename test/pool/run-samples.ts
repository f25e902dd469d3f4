/** A run and a batch, for tests. */
import type { BatchNote } from "../../functions/pool/runs/note-batch.ts";

export const wish = { name: "grpo", workers: 3, metadata: { host: "gpu-1", seed: "7" } };

export const note: BatchNote = {
  samples: 16,
  verdicts: { passed: 30, wrong_output: 5, time_limit: 1 },
  faults: 1,
  retries: 2,
  workersCreated: 1,
  busyMs: 4_500,
};
