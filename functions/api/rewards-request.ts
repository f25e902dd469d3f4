/**
 * From the JSON of `POST /v1/rewards` to a batch, or to everything that is wrong with it.
 */
import { z } from "@hono/zod-openapi";
import { type Comparison, prepareExpected } from "../grading/comparison.ts";
import type { Completion } from "../grading/extraction.ts";
import type { Batch, Sample } from "../rewards/batch.ts";
import { createTaskPreparer, type PreparedTask, type PrepareTask } from "../rewards/task.ts";
import { type Path, quoteName } from "./json-pointer.ts";
import { refuseRequest } from "./refused-request.ts";
import { type RequestSchemas, requestLimits } from "./request-schemas.ts";
import { createProblemList, type ProblemList, readAgainst } from "./schema-reading.ts";

export interface RewardsRequest {
  readonly runId: string;
  readonly detail: "rewards" | "verdicts" | "output";
  readonly batch: Batch;
}

/** A task's JSON once it has its shape and its defaults. */
interface TaskJson {
  readonly test_cases: readonly TestCaseJson[];
  readonly comparison: Comparison;
  readonly limits: { readonly time_ms: number; readonly memory_mib: number; readonly output_bytes: number };
}

interface TestCaseJson {
  readonly input: string;
  readonly output: string;
}

/** The body's own fields; tasks and samples are read one by one. */
interface BodyJson {
  readonly run_id: string;
  readonly tasks?: ReadonlyMap<string, unknown>;
  readonly samples: readonly unknown[];
  readonly options: {
    readonly detail: RewardsRequest["detail"];
    readonly extraction: "first" | "last";
    readonly reasoning: "auto" | "opened" | "none";
    readonly deadline_ms: number;
  };
}

interface Reading {
  readonly schemas: ReadingSchemas;
  readonly prepareTask: PrepareTask;
  readonly problems: ProblemList;
  /** Tasks by their key; null for one that has problems of its own. */
  readonly tasks: Map<string, PreparedTask | null>;
}

type ReadingSchemas = ReturnType<typeof createReadingSchemas>;

const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * Makes the reader of requests. It throws a `Problem` (`invalid_request`) with every problem found, up to 100: of the
 * shape, and of what the shape can't say (sizes in bytes, tasks that nobody defined, expected outputs that nothing
 * could match). Each expected output is read once, here.
 */
export function createRequestReader(schemas: RequestSchemas): (value: unknown) => RewardsRequest {
  const readingSchemas = createReadingSchemas(schemas);
  return (value) => {
    const problems = createProblemList();
    const prepareTask = createTaskPreparer();
    const request = readRequest({ schemas: readingSchemas, prepareTask, problems, tasks: new Map() }, value);
    if (problems.items.length > 0 || request === null)
      throw refuseRequest(problems.items, "Nothing was run.");
    return request;
  };
}

/** The published schemas, with those parts left open that are read one by one. */
function createReadingSchemas({ RewardsRequest, Sample, Task, TaskKey }: RequestSchemas) {
  const Body = RewardsRequest.extend({
    tasks: z.record(z.string(), z.unknown()).optional(),
    samples: z.array(z.unknown()).min(1).max(requestLimits.samples),
  });
  return { Body, Task, TaskKey, TaskChoice: Sample.shape.task, Sample: Sample.extend({ task: z.unknown() }) };
}

function readRequest(reading: Reading, value: unknown): RewardsRequest | null {
  const { problems, schemas } = reading;
  const body = readAgainst(schemas.Body, value, [], problems) as BodyJson | undefined;
  for (const [key, task] of body?.tasks ?? []) {
    if (problems.isFull()) break;
    readAgainst(schemas.TaskKey, key, ["tasks", key], problems);
    reading.tasks.set(key, readTask(reading, task, ["tasks", key]));
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

function readTask(reading: Reading, value: unknown, path: Path): PreparedTask | null {
  const { problems, schemas } = reading;
  const soFar = problems.items.length;
  const task = readAgainst(schemas.Task, value, path, problems) as TaskJson | undefined;
  if (task === undefined) return null;
  const hasShape = problems.items.length === soFar;
  checkTestCases(task, path, problems);
  if (problems.items.length > soFar) {
    if (!hasShape) checkReadability(task, path, problems);
    return null;
  }
  const { time_ms: timeMs, memory_mib: memoryMib, output_bytes: outputBytes } = task.limits;
  const preparation = reading.prepareTask({
    testCases: task.test_cases,
    comparison: task.comparison,
    limits: { timeMs, memoryMib, outputBytes },
  });
  if (preparation.kind === "ready") return preparation.task;
  for (const { caseIndex, detail } of preparation.problems) {
    problems.add([...path, "test_cases", caseIndex, "output"], describeUnreadable(detail));
  }
  return null;
}

/** What a text's schema can't say. Works on a task with problems too: what is well formed in it is checked. */
function checkTestCases(task: TaskJson, path: Path, problems: ProblemList): void {
  for (const [index, testCase] of (task.test_cases ?? []).entries()) {
    if (problems.isFull()) return;
    const checks = [
      ["input", requestLimits.inputBytes, ""],
      ["output", task.limits?.output_bytes ?? Number.POSITIVE_INFINITY, " (the limit 'output_bytes')"],
    ] as const;
    for (const [field, limitBytes, source] of checks) {
      const detail = describeText(testCase?.[field], limitBytes, source);
      if (detail !== null) problems.add([...path, "test_cases", index, field], detail);
    }
  }
}

function describeText(text: unknown, limitBytes: number, source: string): string | null {
  if (typeof text !== "string") return null;
  if (exceedsBytes(text, limitBytes))
    return `may have ${limitBytes} bytes in UTF-8${source}, and has ${Buffer.byteLength(text)}`;
  if (LONE_SURROGATE.test(text)) return "has a lone surrogate, which no UTF-8 text can hold";
  return null;
}

function exceedsBytes(text: string, limitBytes: number): boolean {
  return text.length * 3 > limitBytes && Buffer.byteLength(text) > limitBytes;
}

/** Expected outputs of a task that can't be prepared as a whole, since something else is wrong with it. */
function checkReadability(task: TaskJson, path: Path, problems: ProblemList): void {
  if (task.comparison?.type === undefined) return;
  for (const [index, testCase] of (task.test_cases ?? []).entries()) {
    if (problems.isFull()) return;
    if (typeof testCase?.output !== "string") continue;
    const expected = prepareExpected(task.comparison, testCase.output);
    if (expected.kind === "ok") continue;
    problems.add([...path, "test_cases", index, "output"], describeUnreadable(expected.detail));
  }
}

function describeUnreadable(detail: string): string {
  return `can't be read by the task's comparison: ${detail}`;
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
  if (completion === undefined) return null;
  return task === null ? null : { task, completion };
}

function chooseTask(reading: Reading, choice: unknown, path: Path): PreparedTask | null {
  const { problems, schemas, tasks } = reading;
  if (typeof choice === "object" && choice !== null && !Array.isArray(choice))
    return readTask(reading, choice, path);
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
