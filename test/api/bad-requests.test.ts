import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { createTestApp, post, readProblem, rightRequest } from "./test-app.ts";

type Change = (request: ReturnType<typeof rightRequest> & Record<string, unknown>) => unknown;

/** A task with one thing changed. */
function task(change: Record<string, unknown>): Change {
  return (request) => {
    request.tasks.sum = { test_cases: [{ input: "1", output: "1" }], ...change };
  };
}

function testCase(change: Record<string, unknown>): Change {
  return task({ test_cases: [{ input: "1", output: "1", ...change }] });
}

function sample(change: Record<string, unknown>): Change {
  return (request) => {
    request.samples = [{ task: "sum", completion: "x", ...change }];
  };
}

function options(change: Record<string, unknown>): Change {
  return (request) => {
    request.options = change;
  };
}

function body(change: Record<string, unknown>): Change {
  return (request) => {
    Object.assign(request, change);
  };
}

const mebibyte = "é".repeat(524_288);
const deepOutput = `${"[".repeat(1_001)}${"]".repeat(1_001)}`;

/** What is wrong, and the places that the answer must point at, in order. */
const invalidRequests: [string, Change, string[]][] = [
  ["a body that is a list", () => [1], [""]],
  ["a body that is null", () => null, [""]],
  ["a body that is a text", () => "text", [""]],
  ["no samples", body({ samples: undefined }), ["/samples"]],
  ["an empty list of samples", body({ samples: [] }), ["/samples"]],
  ["samples that are an object", body({ samples: {} }), ["/samples"]],
  [
    "10,001 samples",
    body({ samples: new Array(10_001).fill({ task: "sum", completion: "" }) }),
    ["/samples"],
  ],
  ["a sample that is null", body({ samples: [null] }), ["/samples/0"]],
  ["a sample that is a text", body({ samples: ["sum"] }), ["/samples/0"]],
  ["a sample without a task", sample({ task: undefined }), ["/samples/0/task"]],
  ["a sample without a completion", sample({ completion: undefined }), ["/samples/0/completion"]],
  ["a task that is a number", sample({ task: 3 }), ["/samples/0/task"]],
  ["a task that is null", sample({ task: null }), ["/samples/0/task"]],
  ["a task that is a list", sample({ task: [] }), ["/samples/0/task"]],
  ["a task that nobody defined", sample({ task: "max" }), ["/samples/0/task"]],
  ["a task named like an object's own property", sample({ task: "constructor" }), ["/samples/0/task"]],
  ["no tasks, and one is named", body({ tasks: undefined }), ["/samples/0/task"]],
  ["a completion that is a number", sample({ completion: 1 }), ["/samples/0/completion"]],
  ["a completion that is null", sample({ completion: null }), ["/samples/0/completion"]],
  ["a completion that is an object", sample({ completion: {} }), ["/samples/0/completion"]],
  ["a chat without messages", sample({ completion: [] }), ["/samples/0/completion"]],
  ["a message that is a text", sample({ completion: ["hello"] }), ["/samples/0/completion/0"]],
  ["a message without a role", sample({ completion: [{ content: "x" }] }), ["/samples/0/completion/0/role"]],
  [
    "a message whose content is a number",
    sample({
      completion: [
        { role: "user", content: "x" },
        { role: "assistant", content: 5 },
      ],
    }),
    ["/samples/0/completion/1/content"],
  ],
  [
    "a part that is a text",
    sample({ completion: [{ role: "assistant", content: ["x"] }] }),
    ["/samples/0/completion/0/content/0"],
  ],
  ["an unknown field of a sample", sample({ reward: 1 }), ["/samples/0/reward"]],
  ["an unknown field of the body", body({ sample: [] }), ["/sample"]],
  ["an unknown field that needs escaping", body({ "a/b~c": 1 }), ["/a~1b~0c"]],
  [
    "an unknown field named __proto__",
    () =>
      JSON.parse(
        '{"__proto__":1,"samples":[{"task":{"test_cases":[{"input":"","output":"1"}]},"completion":""}]}',
      ),
    ["/__proto__"],
  ],
  ["an unknown field of the options", options({ details: "rewards" }), ["/options/details"]],
  ["an unknown field of a task", task({ tests: [] }), ["/tasks/sum/tests"]],
  ["an unknown field of a test case", testCase({ name: "x" }), ["/tasks/sum/test_cases/0/name"]],
  ["an unknown field of the limits", task({ limits: { cpu: 1 } }), ["/tasks/sum/limits/cpu"]],
  [
    "an unknown field of the comparison",
    task({ comparison: { type: "json", strict: true } }),
    ["/tasks/sum/comparison/strict"],
  ],
  ["tasks that are a list", body({ tasks: [] }), ["/tasks", "/samples/0/task"]],
  [
    "a task key of 201 characters",
    (request) => {
      request.tasks["k".repeat(201)] = request.tasks.sum;
    },
    [`/tasks/${"k".repeat(201)}`],
  ],
  [
    "a task key that could fill the answer",
    (request) => {
      request.tasks["k".repeat(100_000)] = request.tasks.sum;
    },
    ["/tasks"],
  ],
  ["a task without test cases", task({ test_cases: undefined }), ["/tasks/sum/test_cases"]],
  ["an empty list of test cases", task({ test_cases: [] }), ["/tasks/sum/test_cases"]],
  [
    "1,001 test cases",
    task({ test_cases: new Array(1_001).fill({ input: "", output: "1" }) }),
    ["/tasks/sum/test_cases"],
  ],
  ["a test case that is a text", task({ test_cases: ["1"] }), ["/tasks/sum/test_cases/0"]],
  ["an input that is not a text", testCase({ input: [1] }), ["/tasks/sum/test_cases/0/input"]],
  ["no input", testCase({ input: undefined }), ["/tasks/sum/test_cases/0/input"]],
  ["an output that is not a text", testCase({ output: 6 }), ["/tasks/sum/test_cases/0/output"]],
  ["no output", testCase({ output: undefined }), ["/tasks/sum/test_cases/0/output"]],
  ["an input over 1 MiB", testCase({ input: `${mebibyte}x` }), ["/tasks/sum/test_cases/0/input"]],
  ["an input with a lone surrogate", testCase({ input: "\ud800" }), ["/tasks/sum/test_cases/0/input"]],
  ["an output with a lone surrogate", testCase({ output: '"\udc00"' }), ["/tasks/sum/test_cases/0/output"]],
  ["an output that is not JSON", testCase({ output: "[1," }), ["/tasks/sum/test_cases/0/output"]],
  ["an empty output", testCase({ output: "" }), ["/tasks/sum/test_cases/0/output"]],
  ["an output nested too deep", testCase({ output: deepOutput }), ["/tasks/sum/test_cases/0/output"]],
  [
    "an output over its limit",
    task({ test_cases: [{ input: "", output: '"éé"' }], limits: { output_bytes: 5 } }),
    ["/tasks/sum/test_cases/0/output"],
  ],
  ["an unknown comparison", task({ comparison: { type: "regex" } }), ["/tasks/sum/comparison/type"]],
  ["a comparison without a type", task({ comparison: {} }), ["/tasks/sum/comparison/type"]],
  ["a comparison that is a text", task({ comparison: "json" }), ["/tasks/sum/comparison"]],
  ["time_ms under its range", task({ limits: { time_ms: 9 } }), ["/tasks/sum/limits/time_ms"]],
  ["time_ms over its range", task({ limits: { time_ms: 60_001 } }), ["/tasks/sum/limits/time_ms"]],
  ["time_ms that is no whole number", task({ limits: { time_ms: 10.5 } }), ["/tasks/sum/limits/time_ms"]],
  ["time_ms that is a text", task({ limits: { time_ms: "2000" } }), ["/tasks/sum/limits/time_ms"]],
  ["time_ms that is null", task({ limits: { time_ms: null } }), ["/tasks/sum/limits/time_ms"]],
  ["memory_mib under its range", task({ limits: { memory_mib: 31 } }), ["/tasks/sum/limits/memory_mib"]],
  ["memory_mib over a worker's", task({ limits: { memory_mib: 449 } }), ["/tasks/sum/limits/memory_mib"]],
  ["output_bytes under its range", task({ limits: { output_bytes: 0 } }), ["/tasks/sum/limits/output_bytes"]],
  [
    "output_bytes over its range",
    task({ limits: { output_bytes: 1_048_577 } }),
    ["/tasks/sum/limits/output_bytes"],
  ],
  ["an unknown detail", options({ detail: "all" }), ["/options/detail"]],
  ["an unknown extraction", options({ extraction: "longest" }), ["/options/extraction"]],
  ["an unknown reasoning", options({ reasoning: "closed" }), ["/options/reasoning"]],
  ["a list as reasoning", options({ reasoning: ["plan"] }), ["/options/reasoning"]],
  ["an unknown mode of it", options({ reasoning: { mode: "x", tags: [] } }), ["/options/reasoning/mode"]],
  ["its tags' absence", options({ reasoning: { mode: "auto" } }), ["/options/reasoning/tags"]],
  ["a tag that is no name", options({ reasoning: { tags: ["a", "<b>"] } }), ["/options/reasoning/tags/1"]],
  ["nine tags", options({ reasoning: { tags: Array(9).fill("a") } }), ["/options/reasoning/tags"]],
  ["deadline_ms under its range", options({ deadline_ms: 999 }), ["/options/deadline_ms"]],
  ["deadline_ms over its range", options({ deadline_ms: 840_001 }), ["/options/deadline_ms"]],
  ["options that are a list", body({ options: [] }), ["/options"]],
  ["a run id with a space", body({ run_id: "a b" }), ["/run_id"]],
  ["an empty run id", body({ run_id: "" }), ["/run_id"]],
  ["a run id that is a number", body({ run_id: 1 }), ["/run_id"]],
  [
    "a task that is wrong where it stands",
    (request) => {
      request.samples = [
        ...new Array(7).fill(request.samples[0]),
        { task: { test_cases: [{ input: "", output: "{" }] }, completion: "" },
      ];
    },
    ["/samples/7/task/test_cases/0/output"],
  ],
  [
    "many things at once",
    (request) => {
      request.tasks.sum = {
        test_cases: [{ input: "1", output: "1" }, { input: "1" }, { input: "1", output: "]" }],
        limits: { time_ms: 1 },
      };
      request.tasks["a/b"] = { test_cases: [{ input: "", output: "oops" }] };
      request.samples.push({ task: "nope", completion: 4 }, { task: "a/b", completion: [] });
      request.options = { detail: 1 };
      Object.assign(request, { extra: true });
    },
    [
      "/extra",
      "/options/detail",
      "/tasks/sum/test_cases/1/output",
      "/tasks/sum/limits/time_ms",
      "/tasks/sum/test_cases/2/output",
      "/tasks/a~1b/test_cases/0/output",
      "/samples/1/completion",
      "/samples/1/task",
      "/samples/2/completion",
    ],
  ],
];

describe("a request that asks for something impossible", () => {
  it.each(invalidRequests)("is refused before any worker is asked for: %s", async (_, change, pointers) => {
    const testApp = createTestApp();
    const request = rightRequest();
    const changed = change(request);
    const answer = await post(testApp, JSON.stringify(changed === undefined ? request : changed));
    const problem = await readProblem(answer);
    expect(problem).toMatchObject({ status: 422, code: "invalid_request" });
    expect(answer.status).toBe(422);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    expect(problem.errors.map((error) => error.pointer)).toEqual(pointers);
    for (const { detail } of problem.errors) expect(detail.length).toBeGreaterThan(10);
    expect(JSON.stringify(problem).length).toBeLessThan(4_000);
    expect(testApp.workers.acquires).toEqual([]);
  });

  it("is told the first hundred problems, and costs no more than that", async () => {
    const samples = new Array(10_000).fill({ task: "nope", completion: 1 });
    const problem = await readProblem(await post(createTestApp(), { samples }));
    expect(problem.errors).toHaveLength(100);
    expect(problem.errors[99]?.pointer).toBe("/samples/49/task");
    expect(problem.detail).toContain("100 problems or more");
  });

  it("is refused quickly even with millions of wrong items", async () => {
    const bytes = gzipSync(
      `{"samples":[{"task":{"test_cases":[]},"completion":[${"1,".repeat(10_000_000)}1]}]}`,
    );
    const before = process.memoryUsage().rss;
    const answer = await post(createTestApp(), bytes, { "content-encoding": "gzip" });
    expect(answer.status).toBe(422);
    expect((await readProblem(answer)).errors).toHaveLength(100);
    expect(process.memoryUsage().rss - before).toBeLessThan(700 * 1024 * 1024);
  });

  it("would be answered with more verdicts than an answer holds", async () => {
    const test_cases = Array.from({ length: 1_000 }, () => ({ input: "", output: "1" }));
    const samples = new Array(1_001).fill({ task: "sum", completion: "" });
    const request = { tasks: { sum: { test_cases } }, samples };
    const refused = await post(createTestApp(), request);
    expect(refused.status).toBe(422);
    expect((await readProblem(refused)).errors).toMatchObject([{ pointer: "/options/detail" }]);
    const brief = await post(createTestApp(), { ...request, options: { detail: "rewards" } });
    expect(brief.status).toBe(200);
  });
});

const nested = (levels: number) => `{"samples":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
const hugeString = `{"samples":"${"[{".repeat(1000)}\\"${"[".repeat(100)}"}`;

describe("a body that can't be read", () => {
  it.each<[string, string | Uint8Array, Record<string, string>, number, string]>([
    ["not JSON", "{", {}, 400, "invalid_json"],
    ["empty", "", {}, 400, "invalid_json"],
    ["blank", "  \n", {}, 400, "invalid_json"],
    ["followed by something", "{} {}", {}, 400, "invalid_json"],
    ["Python's NaN", '{"samples": NaN}', {}, 400, "invalid_json"],
    ["not UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]), {}, 400, "invalid_json"],
    ["UTF-16", Buffer.from('{"samples":[]}', "utf16le"), {}, 400, "invalid_json"],
    ["an overlong encoding", new Uint8Array([0x22, 0xc0, 0x80, 0x22]), {}, 400, "invalid_json"],
    ["nested 65 levels", nested(65), {}, 400, "invalid_json"],
    ["nested a million levels", "[".repeat(1_000_000), {}, 400, "invalid_json"],
    ["not the gzip that it says", "{}", { "content-encoding": "gzip" }, 400, "invalid_json"],
    [
      "gzip that is cut off",
      gzipSync("{}").subarray(0, 12),
      { "content-encoding": "gzip" },
      400,
      "invalid_json",
    ],
    ["plain text", "{}", { "content-type": "text/plain" }, 415, "unsupported_media_type"],
    ["a form", "{}", { "content-type": "application/x-www-form-urlencoded" }, 415, "unsupported_media_type"],
    ["lines", "{}", { "content-type": "application/x-ndjson" }, 415, "unsupported_media_type"],
    [
      "in Latin-1",
      "{}",
      { "content-type": "application/json; charset=latin1" },
      415,
      "unsupported_media_type",
    ],
    ["deflated", "{}", { "content-encoding": "deflate" }, 415, "unsupported_media_type"],
    ["gzip in gzip", "{}", { "content-encoding": "gzip, gzip" }, 415, "unsupported_media_type"],
    ["over 6 MiB", `"${"x".repeat(6 * 1024 * 1024)}"`, {}, 413, "too_large"],
    ["over 6 MiB, as it says itself", "{}", { "content-length": "6291457" }, 413, "too_large"],
    [
      "over 32 MiB inflated",
      gzipSync(Buffer.alloc(32 * 1024 * 1024 + 1, 0x20)),
      { "content-encoding": "gzip" },
      413,
      "too_large",
    ],
    [
      "a gzip bomb",
      gzipSync(Buffer.alloc(512 * 1024 * 1024)),
      { "content-encoding": "gzip" },
      413,
      "too_large",
    ],
  ])("%s", async (_, bytes, headers, status, code) => {
    const testApp = createTestApp();
    const answer = await post(testApp, bytes, headers);
    const problem = await readProblem(answer);
    expect(problem).toMatchObject({ status, code, errors: [] });
    expect(answer.status).toBe(status);
    expect(testApp.workers.acquires).toEqual([]);
    expect(testApp.logged).toEqual([]);
  });

  it.each<[string, string]>([
    ["nested 64 levels", nested(64)],
    ["with brackets in a text", hugeString],
    ["with a byte order mark", '\ufeff{"samples":[]}'],
    ["with the same key twice", '{"samples":[],"samples":[]}'],
  ])("is not one that is %s", async (_, text) => {
    expect((await post(createTestApp(), text)).status).toBe(422);
  });

  it.each([["application/json"], ["application/json; charset=utf-8"], ['Application/JSON;charset="UTF-8"']])(
    "is not one of type %s",
    async (type) => {
      expect((await post(createTestApp(), rightRequest(), { "content-type": type })).status).toBe(200);
    },
  );

  it("says where the JSON is broken, and repeats none of it", async () => {
    const problem = await readProblem(await post(createTestApp(), '{"secret":1,}'));
    expect(problem.detail).toMatch(/character 12/);
    expect(problem.detail).not.toContain("secret");
  });
});
