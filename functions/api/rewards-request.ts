/**
 * From the JSON of `POST /v1/rewards` to a batch, or to everything that is wrong with it.
 */
import { z } from "@hono/zod-openapi";
import type { Completion } from "../grading/extraction.ts";
import type { Reasoning } from "../grading/reasoning.ts";
import type { Batch, Sample } from "../rewards/batch.ts";
import { holdCompletion } from "../rewards/held-text.ts";
import { createTaskPreparer, type PreparedTask } from "../rewards/task.ts";
import { createUnpacker } from "../tasks/packed-text.ts";
import { type Path, quoteName } from "./json-pointer.ts";
import { refuseRequest } from "./refused-request.ts";
import { type RequestSchemas, requestLimits } from "./request-schemas.ts";
import { createProblemList, type ProblemList, readAgainst } from "./schema-reading.ts";
import { createTaskReader, type ReadTask, type TaskReading } from "./task-reading.ts";

export interface RewardsRequest {
  readonly runId: string;
  readonly detail: "rewards" | "verdicts" | "output";
  readonly batch: Batch;
}

/** The body's own fields; tasks and samples are read one by one. */
interface BodyJson {
  readonly run_id: string;
  readonly tasks?: ReadonlyMap<string, unknown>;
  readonly samples: readonly unknown[];
  readonly options: {
    readonly detail: RewardsRequest["detail"];
    readonly extraction: "first" | "last";
    readonly reasoning: Reasoning;
    readonly deadline_ms: number;
  };
}

interface Reading extends TaskReading {
  readonly schemas: ReadingSchemas;
  readonly readTask: ReadTask;
  /** Tasks by their key; null for one that has problems of its own. */
  readonly tasks: Map<string, PreparedTask | null>;
}

type ReadingSchemas = ReturnType<typeof createReadingSchemas>;

/**
 * Makes the reader of requests. It throws a `Problem` (`invalid_request`) with every problem found, up to 100: of the
 * shape, and of what the shape can't say (sizes in bytes, tasks that nobody defined, expected outputs that nothing
 * could match). Each expected output is read once, here.
 */
export function createRequestReader(schemas: RequestSchemas): (value: unknown) => RewardsRequest {
  const readTask = createTaskReader(schemas);
  const readingSchemas = createReadingSchemas(schemas);
  return (value) => {
    const problems = createProblemList();
    const reading: Reading = {
      schemas: readingSchemas,
      readTask,
      problems,
      prepareTask: createTaskPreparer(),
      unpack: createUnpacker(),
      known: new Map(),
      tasks: new Map(),
    };
    const request = readRequest(reading, value);
    if (problems.items.length > 0 || request === null)
      throw refuseRequest(problems.items, "Nothing was run.");
    return request;
  };
}

/** The published schemas, with those parts left open that are read one by one. */
function createReadingSchemas({ RewardsRequest, Sample, TaskKey }: RequestSchemas) {
  const Body = RewardsRequest.extend({
    tasks: z.record(z.string(), z.unknown()).optional(),
    samples: z.array(z.unknown()).min(1).max(requestLimits.samples),
  });
  return { Body, TaskKey, TaskChoice: Sample.shape.task, Sample: Sample.extend({ task: z.unknown() }) };
}

function readRequest(reading: Reading, value: unknown): RewardsRequest | null {
  const { problems, schemas } = reading;
  const body = readAgainst(schemas.Body, value, [], problems) as BodyJson | undefined;
  for (const [key, task] of body?.tasks ?? []) {
    if (problems.isFull()) break;
    readAgainst(schemas.TaskKey, key, ["tasks", key], problems);
    reading.tasks.set(key, reading.readTask(reading, task, ["tasks", key]));
  }
  const samples: Sample[] = [];
  for (const [index, sample] of (body?.samples ?? []).entries()) {
    if (problems.isFull()) break;
    const read = readSample(reading, sample, ["samples", index]);
    if (read !== null) samples.push(read);
  }
  if (body === undefined || problems.items.length > 0) return null;
  checkAnswerSize(samples, body, problems);
  const { detail, extraction, reasoning, deadline_ms: deadlineMs } = body.options;
  const keepOutput = detail === "output";
  const batch = { samples, extraction: { extraction, reasoning }, deadlineMs, keepOutput };
  return { runId: body.run_id, detail, batch };
}

function readSample(reading: Reading, value: unknown, path: Path): Sample | null {
  const { problems, schemas } = reading;
  const soFar = problems.items.length;
  const sample = readAgainst(schemas.Sample, value, path, problems) as
    | { readonly task?: unknown; readonly completion?: Completion }
    | undefined;
  if (sample === undefined) return null;
  const completion = problems.items.length === soFar ? sample.completion : undefined;
  const task = chooseTask(reading, sample.task, [...path, "task"]);
  return completion === undefined || task === null ? null : { task, completion: holdCompletion(completion) };
}

function chooseTask(reading: Reading, choice: unknown, path: Path): PreparedTask | null {
  const { problems, schemas, tasks } = reading;
  if (typeof choice === "object" && choice !== null && !Array.isArray(choice))
    return reading.readTask(reading, choice, path);
  if (typeof choice !== "string") {
    readAgainst(schemas.TaskChoice, choice, path, problems);
    return null;
  }
  const task = tasks.get(choice);
  if (task !== undefined) return task;
  const known = [...tasks.keys()].slice(0, 5).map(quoteName).join(", ");
  const hint =
    tasks.size === 0 ? "the request has no 'tasks'" : `'tasks' has ${known}${tasks.size > 5 ? ", …" : ""}`;
  problems.add(path, `there is no task ${quoteName(choice)}: ${hint}`);
  return null;
}

function checkAnswerSize(samples: readonly Sample[], body: BodyJson, problems: ProblemList): void {
  if (body.options.detail === "rewards") return;
  const verdicts = samples.reduce((sum, sample) => sum + sample.task.inputs.length, 0);
  if (verdicts <= requestLimits.answeredVerdicts) return;
  problems.add(
    ["options", "detail"],
    `the answer would have ${verdicts} verdicts, and may have ${requestLimits.answeredVerdicts}: ` +
      `ask for "rewards", or send fewer samples`,
  );
}
