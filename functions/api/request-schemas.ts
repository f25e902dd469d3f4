/**
 * The shapes of requests: what is validated and what is published are the same objects.
 */
import { z } from "@hono/zod-openapi";
import { tagNamePattern } from "../grading/reasoning-tags.ts";
import { runIdPattern, runLimits } from "../pool/runs/run-wish.ts";
import { longestDeadlineMs } from "../rewards/batch.ts";
import { requestExample } from "./request-examples.ts";
import { createTaskSchemas } from "./task-schemas.ts";

/** Bounds of a request. What depends on a worker's size is configuration. */
export const requestLimits = {
  samples: 10_000,
  taskKeyCharacters: 200,
  idempotencyKeyCharacters: 200,
  /** Verdicts that one answer may hold, equal samples counted each. */
  answeredVerdicts: 1_000_000,
} as const;

/** Other fields of messages and parts are passed over: chats carry much that has nothing to do with programs. */
const ChatPart = z.looseObject({ type: z.string().optional(), text: z.unknown().optional() });
const ChatMessage = z
  .looseObject({
    role: z.string(),
    content: z.union([z.string(), z.array(ChatPart), z.null()]).optional(),
  })
  .openapi("ChatMessage");

const Completion = z.union([z.string(), z.array(ChatMessage).min(1)]).openapi({
  description:
    "A text, or chat messages of which the model's last one counts. One of more than 256 KiB is `no_program: too_large`.",
});

const TaskKey = z.string().refine((key) => countCharacters(key) <= requestLimits.taskKeyCharacters, {
  message: `a task's key may have ${requestLimits.taskKeyCharacters} characters, and this one has more`,
});

const RunId = z
  .string()
  .regex(runIdPattern, `must be 1 to ${runLimits.idCharacters} letters, digits, and any of . _ : ~ -`)
  .openapi({ description: "A registered run; without one the batch counts for the run `default`." });

const defaultOptions = {
  detail: "verdicts",
  extraction: "first",
  reasoning: "auto",
  deadline_ms: 600_000,
} as const;

const ReasoningMode = z.enum(["auto", "opened", "none"]);
const ReasoningTags = z.strictObject({
  mode: ReasoningMode.optional(),
  tags: z
    .array(z.string().regex(tagNamePattern))
    .max(8)
    .openapi({
      description: "Names of tags that hold reasoning, beside the known ones.",
      example: ["plan"],
    }),
});

const Options = z
  .strictObject({
    detail: z.enum(["rewards", "verdicts", "output"]).default(defaultOptions.detail),
    extraction: z.enum(["first", "last"]).default(defaultOptions.extraction),
    reasoning: z.union([ReasoningMode, ReasoningTags]).default(defaultOptions.reasoning),
    deadline_ms: z.number().int().min(1_000).max(longestDeadlineMs).default(defaultOptions.deadline_ms),
  })
  .openapi("Options");

const RewardsHeaders = z.object({
  accept: z
    .string()
    .optional()
    .openapi({ description: "`application/x-ndjson` streams.", example: "application/json" }),
  "idempotency-key": z
    .string()
    .min(1)
    .max(requestLimits.idempotencyKeyCharacters)
    .optional()
    .openapi({
      description:
        "The batch's name, one per API key, kept for an hour. The same body sent again is answered from the record of " +
        "the first answer, as JSON or as a stream, and nothing runs; while the first is under way it is `in_progress`, " +
        "and another body is an `idempotency_mismatch`. Not recorded, so that they run again: refusals, cancelled " +
        "batches, answers with a null, and answers of more than 4 MiB when compressed (about 100,000 verdicts, or long " +
        "outputs). `DELETE /v1/batches/{key}` cancels the batch.",
      example: "job-7/step-12",
    }),
  "x-request-id": z.string().optional().openapi({ description: "Echoed, if well formed." }),
});

export type RequestSchemas = ReturnType<typeof createRequestSchemas>;

/**
 * Makes the schemas of `POST /v1/rewards`. Throws when workers are too small to run anything.
 *
 * @param maxMemoryMib What one test case may be given: a worker's memory less its reserve.
 */
export function createRequestSchemas(maxMemoryMib: number) {
  const { Task, Limits } = createTaskSchemas(maxMemoryMib);

  const Sample = z
    .strictObject({
      task: z.union([z.string(), Task]).openapi({ description: "A key of `tasks`, or the task itself." }),
      completion: Completion,
    })
    .openapi("Sample");

  const RewardsRequest = z
    .strictObject({
      run_id: RunId.default("default"),
      tasks: z.record(TaskKey, Task).default({}),
      samples: z.array(Sample).min(1).max(requestLimits.samples),
      options: Options.default(defaultOptions),
    })
    .openapi("RewardsRequest", { example: requestExample });

  return { Task, Limits, TaskKey, Sample, RewardsRequest, RewardsHeaders };
}

function countCharacters(key: string): number {
  if (key.length > 2 * requestLimits.taskKeyCharacters) return key.length;
  return [...key].length;
}
