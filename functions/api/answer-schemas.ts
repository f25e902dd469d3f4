/**
 * The shapes of answers, as they are published. Tests hold real answers against them.
 */
import { z } from "@hono/zod-openapi";
import { problemCodes } from "./problem.ts";

const FaultCode = z.string().openapi({
  description:
    "`worker_lost`, `supervisor_protocol`, `isolation_failed`, `starved`, `deadline_exceeded`, `no_capacity`, …",
  example: "worker_lost",
});

const Measures = {
  wall_ms: z.number(),
  cpu_ms: z.number(),
  peak_rss_kib: z.number(),
};

const CaseNumber = z.number().int().optional().openapi({
  description: "With `max_tests`: which of the task's test cases it is, the first one being 0.",
});

const CaseVerdict = z
  .strictObject({
    verdict: z.enum([
      "passed",
      "wrong_output",
      "runtime_error",
      "signaled",
      "time_limit",
      "memory_limit",
      "output_limit",
    ]),
    case: CaseNumber,
    exit_code: z.number().int().optional().openapi({ description: "With `runtime_error`." }),
    signal: z.string().optional().openapi({ description: "With `signaled`, such as `SIGSEGV`." }),
    ...Measures,
    stdout: z
      .string()
      .nullable()
      .optional()
      .openapi({ description: "With `detail: output`. Null: not UTF-8." }),
    stderr_tail: z.string().optional().openapi({ description: "With `detail: output`." }),
  })
  .openapi("CaseVerdict");

const CaseNotRun = z.strictObject({ verdict: z.literal("not_run"), case: CaseNumber }).openapi("CaseNotRun", {
  description:
    "With `fail_fast`: another test case had failed, so that this one was not run, or not to its end. It counts as not passed.",
});

const SampleFault = z
  .strictObject({ code: FaultCode, detail: z.string(), retryable: z.boolean() })
  .openapi("SampleFault");

export const SampleAnswer = z
  .strictObject({
    reward: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .openapi({ description: "Null exactly when `status` is `fault`." }),
    status: z.enum(["graded", "no_program", "syntax_error", "fault"]),
    reason: z.string().optional().openapi({ description: "With `no_program` and `syntax_error`." }),
    passed: z.number().int().optional(),
    total: z.number().int().optional(),
    verdicts: z.array(z.union([CaseVerdict, CaseNotRun])).optional(),
    fault: SampleFault.optional(),
  })
  .openapi("SampleAnswer");

const Usage = z
  .strictObject({
    wall_ms: z.number(),
    queue_ms: z.number(),
    workers: z.number().int(),
    worker_seconds: z.number().openapi({
      description:
        "Time for which workers were held, added up, and the time that sandboxes created for the batch took to become workers, or to fail.",
    }),
    workers_created: z.number().int(),
    retries: z.number().int(),
    programs_run: z.number().int(),
    duplicates: z.number().int(),
    cost_usd: z.number().optional().openapi({ description: "What `worker_seconds` cost." }),
    worker_seconds_since_previous_batch: z.number().nullable().optional().openapi({
      description:
        "Of the whole run, idle time too, since its batch before this one. Null when the run's record could not be reached.",
    }),
  })
  .openapi("Usage");

const Rewards = z.array(z.number().min(0).max(1).nullable()).openapi({
  description:
    "One per sample, in order. Null: the platform failed, nothing is known of the sample. Never treat it as 0.",
});

export const RewardsAnswer = z
  .strictObject({
    rewards: Rewards,
    results: z.array(SampleAnswer).optional().openapi({ description: "Not with `detail: rewards`." }),
    faults: z
      .array(z.strictObject({ index: z.number().int(), code: FaultCode, retryable: z.boolean() }))
      .optional()
      .openapi({ description: "With `detail: rewards`, in the place of `results`." }),
    usage: Usage,
    request_id: z.string(),
  })
  .openapi("RewardsAnswer");

export const ProblemAnswer = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    detail: z.string(),
    code: z.enum(problemCodes).openapi({ description: "What clients branch on." }),
    request_id: z.string(),
    errors: z
      .array(z.strictObject({ pointer: z.string(), detail: z.string() }))
      .openapi({ description: "Every problem found, up to 100; `pointer` is a JSON pointer into the body." }),
  })
  .openapi("Problem");

export const StreamLine = z
  .union([
    SampleAnswer.partial({ status: true }).extend({ type: z.literal("result"), index: z.number().int() }),
    z.strictObject({ type: z.literal("progress"), done: z.number().int(), total: z.number().int() }),
    z.strictObject({ type: z.literal("summary"), rewards: Rewards, usage: Usage, request_id: z.string() }),
    ProblemAnswer.extend({ type: z.literal("error"), retry_after_s: z.number().optional() }),
  ])
  .openapi("StreamLine", {
    description:
      "One line of the stream: results as samples end, progress at least every 10 s, and last a summary or an error: " +
      "a stream begins after a second at the latest, so whatever refuses a batch later (404, 409, 422, 503, …) is its " +
      "last line, with the status and `Retry-After` that it would have had. A stream without its last line was cut.",
  });

export const Liveness = z.strictObject({ status: z.literal("ok") }).openapi("Liveness");

export const Readiness = z
  .strictObject({
    status: z.enum(["ok", "unavailable"]),
    checks: z
      .record(z.string(), z.unknown())
      .openapi({ description: "What was looked at, and what was found." }),
  })
  .openapi("Readiness");

/** The answer to `requestExample`. */
export const answerExample = {
  rewards: [1, 0],
  results: [
    {
      reward: 1,
      status: "graded",
      passed: 1,
      total: 1,
      verdicts: [{ verdict: "passed", wall_ms: 4.1, cpu_ms: 3.9, peak_rss_kib: 17_000 }],
    },
    { reward: 0, status: "no_program", reason: "no_fenced_block", passed: 0, total: 1 },
  ],
  usage: {
    wall_ms: 21,
    queue_ms: 6,
    workers: 1,
    worker_seconds: 0.015,
    workers_created: 0,
    retries: 0,
    programs_run: 1,
    duplicates: 0,
    cost_usd: 4.5e-7,
    worker_seconds_since_previous_batch: 12.4,
  },
  request_id: "8f14e45f-ceea-4e7a-9c2b-1d2f5a3b7c11",
} as const;
