/**
 * The shapes of requests and answers about runs and batches.
 */
import { z } from "@hono/zod-openapi";
import { runLimits } from "../pool/runs/run-wish.ts";

const defaultWorkers = 2;

export const runExample = { name: "grpo, seed 7", workers: 2, metadata: { host: "trainer-1" } };

/** Bounds that only a deployment knows are arguments: `slots` is how many workers there can be. */
export function createRunSchemas(slots: number) {
  if (!Number.isInteger(slots) || slots < 1) throw new Error(`a pool of ${slots} slots can't run anything`);
  const RunRequest = z
    .strictObject({
      name: z
        .string()
        .max(runLimits.nameCharacters)
        .optional()
        .openapi({ description: "For people. Default: the id." }),
      workers: z
        .number()
        .int()
        .min(1)
        .max(slots)
        .default(Math.min(defaultWorkers, slots))
        .openapi({ description: "Workers that its batches may hold at once." }),
      metadata: z
        .record(
          z.string().min(1).max(runLimits.metadataKeyCharacters),
          z.string().max(runLimits.metadataValueCharacters),
        )
        .default({})
        .openapi({ description: `Up to ${runLimits.metadataPairs} pairs.` }),
    })
    .openapi("RunRequest", { example: runExample });
  return { RunRequest, HeartbeatRequest };
}

export type RunSchemas = ReturnType<typeof createRunSchemas>;

const HeartbeatRequest = z.strictObject({}).openapi("HeartbeatRequest");

const RunId = z.string().openapi({ example: "job-7" });
const Time = z.iso.datetime().openapi({ example: "2027-01-15T08:05:00.000Z" });

export const RunRegistration = z
  .strictObject({
    run_id: RunId,
    expires_at: Time,
    workers_ready: z
      .number()
      .int()
      .openapi({ description: "Workers that are there by now, as many as it wants at most.", example: 2 }),
  })
  .openapi("RunRegistration");

export const RunHeartbeat = z.strictObject({ run_id: RunId, expires_at: Time }).openapi("RunHeartbeat");

const Totals = z
  .strictObject({
    batches: z.number().int(),
    samples: z.number().int(),
    verdicts: z.strictObject({
      passed: z.number().int(),
      wrong_output: z.number().int(),
      runtime_error: z.number().int(),
      signaled: z.number().int(),
      time_limit: z.number().int(),
      memory_limit: z.number().int(),
      output_limit: z.number().int(),
    }),
    faults: z.number().int().openapi({ description: "Samples without a reward." }),
    retries: z.number().int(),
    workers_created: z.number().int(),
    worker_seconds: z.number().openapi({
      description:
        "Time for which its batches held workers, its share of the time workers were idle, and the time that sandboxes created for it took to become workers, or to fail.",
    }),
    cost_usd: z.number(),
  })
  .openapi("RunTotals", {
    example: {
      batches: 1,
      samples: 2,
      verdicts: {
        passed: 1,
        wrong_output: 0,
        runtime_error: 0,
        signaled: 0,
        time_limit: 0,
        memory_limit: 0,
        output_limit: 0,
      },
      faults: 0,
      retries: 0,
      workers_created: 0,
      worker_seconds: 12.4,
      cost_usd: 0.000375,
    },
  });

export const RunAnswer = z
  .strictObject({
    run_id: RunId,
    name: z.string().openapi({ example: runExample.name }),
    state: z.enum(["active", "finished", "expired"]),
    totals: Totals,
  })
  .openapi("Run");

export const RunList = z
  .strictObject({ runs: z.array(RunAnswer).openapi({ description: "The latest registered first." }) })
  .openapi("RunList");

export const RunFinished = z
  .strictObject({
    run_id: RunId,
    remaining_sandboxes: z.array(z.string()).openapi({
      description: "Sandboxes that no run needs and that were still there after 30 s.",
      example: [],
    }),
    totals: Totals,
  })
  .openapi("RunFinished");

export const BatchCancelled = z
  .strictObject({
    cancelled: z
      .boolean()
      .openapi({ description: "False when the batch was over before it could be cancelled.", example: true }),
    stopped: z.number().int().openapi({ description: "Workers that were taken from it now.", example: 1 }),
  })
  .openapi("BatchCancelled");
