/**
 * The shapes of a task: its tests, and how they are compared, limited and scored.
 */
import { z } from "@hono/zod-openapi";

/** Bounds of a task. What depends on a worker's size is configuration. */
export const taskLimits = {
  testCases: 1_000,
  inputBytes: 1_048_576,
  weight: 1_000_000,
  relativeTolerance: 0.5,
} as const;

const smallestMemoryMib = 32;
const defaultMemoryMib = 192;
/** How far a float may be off where a task asks for `numbers` and says no more. */
const defaultTolerance = { absolute: 1e-6, relative: 1e-6 };

const TestCase = z
  .strictObject({
    input: z.string().openapi({ description: "Standard input, up to 1 MiB." }),
    output: z.string().openapi({ description: "Expected standard output, up to `output_bytes`." }),
  })
  .openapi("TestCase");

const Tests = z
  .union([z.string(), z.array(z.unknown()), z.record(z.string(), z.unknown())])
  .openapi("Tests", {
    description:
      "Tests as a dataset has them, in any of the shapes of `docs/tasks.md`: a list, an object, or a text of either.",
  });

const Tolerance = z
  .strictObject({
    absolute: z.number().min(0).default(0),
    relative: z.number().min(0).max(taskLimits.relativeTolerance).default(0).openapi({
      description: "A part of the expected value.",
    }),
  })
  .openapi("Tolerance", {
    description: "How far a float may be off: within either of the two is close enough.",
  });

const Comparison = z
  .discriminatedUnion("type", [
    z.strictObject({ type: z.literal("json"), tolerance: Tolerance.optional() }).openapi("JsonComparison", {
      description:
        "One JSON value equal to the expected one, as Python's json module sees it: `1`, `1.0` and `true` differ. With a tolerance, floats need only be close.",
    }),
    z
      .strictObject({ type: z.literal("text"), strict: z.boolean().default(false) })
      .openapi("TextComparison", {
        description:
          "The same text. Line ends, blanks at line ends and blank lines at the end are free, unless `strict`.",
      }),
    z.strictObject({ type: z.literal("tokens") }).openapi("TokensComparison", {
      description: "The same words in the same order, whatever blanks are between them.",
    }),
    z
      .strictObject({ type: z.literal("numbers"), tolerance: Tolerance.default(defaultTolerance) })
      .openapi("NumbersComparison", {
        description:
          "As `tokens`, with numbers compared as numbers: an expected integer exactly, a float within the tolerance. NaN and infinities never match.",
      }),
    z.strictObject({ type: z.literal("lines_unordered") }).openapi("LinesUnorderedComparison", {
      description: "The same lines, each as often, in any order. Blank lines don't count.",
    }),
    z.strictObject({ type: z.literal("tokens_unordered") }).openapi("TokensUnorderedComparison", {
      description: "The same words, each as often, in any order.",
    }),
  ])
  .openapi("Comparison", {
    description:
      "`json` for `test_cases` and for calls, and `text` for other `tests`, unless said otherwise. Tests that are Python source, and those with a checker, have none.",
  });

const Scoring = z
  .strictObject({
    type: z.enum(["fraction", "all_or_nothing", "threshold"]).default("fraction").openapi({
      description:
        "`fraction`: the share of the test cases that passed. `all_or_nothing`: 1 if all did, else 0. `threshold`: 1 if the share is at least `threshold`, else 0.",
    }),
    threshold: z.number().gt(0).max(1).optional().openapi({ description: "With `threshold`." }),
    weights: z
      .array(z.number().min(0).max(taskLimits.weight))
      .min(1)
      .max(taskLimits.testCases)
      .optional()
      .openapi({
        description:
          "What each test case counts for; not with `all_or_nothing`. One per test case, in order.",
      }),
    max_tests: z.number().int().min(1).max(taskLimits.testCases).optional().openapi({
      description: "Run at most so many test cases. Which ones hangs on the tests alone.",
    }),
    fail_fast: z.boolean().default(false).openapi({
      description: "With `all_or_nothing`: once a test case has failed, the program's others need not run.",
    }),
  })
  .openapi("Scoring");

/** Null as in a table's empty cell: not given. */
const DatasetLimit = z.union([z.number(), z.string(), z.null()]);

/** Makes the schemas that hang on what one test case may be given. */
export function createTaskSchemas(maxMemoryMib: number) {
  const Limits = createLimitsSchema(maxMemoryMib);
  const Task = z
    .strictObject({
      test_cases: z.array(TestCase).min(1).max(taskLimits.testCases).optional(),
      tests: Tests.optional(),
      comparison: Comparison.optional(),
      limits: Limits.default(Limits.parse({})),
      scoring: Scoring.default(Scoring.parse({})),
    })
    .openapi("Task", { description: "It has `test_cases` or `tests`, one of the two." });
  return { Task, Limits };
}

function createLimitsSchema(maxMemoryMib: number) {
  if (maxMemoryMib < smallestMemoryMib) throw new Error(`workers of ${maxMemoryMib} MiB can't run anything`);
  const memory = z.number().int().min(smallestMemoryMib).max(maxMemoryMib);
  return z
    .strictObject({
      time_ms: z.number().int().min(10).max(60_000).default(2_000),
      memory_mib: memory.default(Math.min(defaultMemoryMib, maxMemoryMib)),
      output_bytes: z.number().int().min(1).max(1_048_576).default(65_536),
      time_limit: DatasetLimit.optional().openapi({
        description:
          "In the place of `time_ms`, as datasets write it: seconds, or a text such as `2 seconds`.",
      }),
      memory_limit: DatasetLimit.optional().openapi({
        description: "In the place of `memory_mib`: megabytes, or a text such as `256 megabytes`.",
      }),
      memory_limit_bytes: DatasetLimit.optional().openapi({ description: "In the place of `memory_mib`." }),
    })
    .openapi("Limits", { description: "Limits of each test case." });
}
