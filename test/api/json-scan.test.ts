/** What JavaScript's own JSON reader loses: keys that are there twice, and how numbers are written. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readJsonBody } from "../../functions/api/body.ts";
import { type Place, scanJson } from "../../functions/api/json-scan.ts";
import { createUnpacker } from "../../functions/tasks/packed-text.ts";
import { readTests } from "../../functions/tasks/tests-reader.ts";
import { createTestApp, post, readProblem } from "./test-app.ts";

/** A JSON text, and its first repeated key by the order in which the text is read; by construction, not by reading. */
interface Written {
  readonly text: string;
  readonly repeated: Place | null;
}

const scalar = fc.oneof(
  fc.string().map((text) => JSON.stringify(text)),
  fc.constantFrom('"\\\\"', '"\\""', '"{\\"a\\":1,\\"a\\":2}"', "1.5", "-2", "true", "null", "1e-3"),
);
const blank = fc.constantFrom("", " ", "\n\t");
// Some of them are the same key, written in another way.
const keys = [
  ["a", '"a"'],
  ["a", '"\\u0061"'],
  ["b", '"b"'],
  ["", '""'],
  ["__proto__", '"__proto__"'],
  ['"', '"\\""'],
  ["c,}", '"c,}"'],
] as const;

const { value: json } = fc.letrec<{ value: Written }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    scalar.map((text): Written => ({ text, repeated: null })),
    fc.tuple(fc.array(tie("value"), { maxLength: 4 }), blank).map(([items, space]): Written => {
      const at = items.findIndex(({ repeated }) => repeated !== null);
      const inner = items[at]?.repeated;
      return {
        text: `[${space}${items.map(({ text }) => text).join(`,${space}`)}]`,
        repeated: inner ? [at, ...inner] : null,
      };
    }),
    fc
      .tuple(fc.array(fc.tuple(fc.constantFrom(...keys), tie("value")), { maxLength: 5 }), blank)
      .map(([members, space]): Written => {
        const seen = new Set<string>();
        let repeated: Place | null = null;
        for (const [[key], inner] of members) {
          if (repeated === null && seen.has(key)) repeated = [key];
          seen.add(key);
          if (repeated === null && inner.repeated !== null) repeated = [key, ...inner.repeated];
        }
        const parts = members.map(([[, written], { text }]) => `${written}${space}:${space}${text}`);
        return { text: `{${space}${parts.join(",")}${space}}`, repeated };
      }),
  ),
}));

describe("a key that is there twice", () => {
  it("is found wherever it is, and nowhere else", () => {
    fc.assert(
      fc.property(json, ({ text, repeated }) => {
        JSON.parse(text);
        const found = scanJson(text, () => false).repeated;
        expect(found?.place ?? null).toEqual(repeated);
        if (found !== null)
          expect(JSON.parse(`{${/^"(?:[^"\\]|\\.)*"/.exec(text.slice(found.at[1]))?.[0]}:1}`)).toEqual({
            [String(found.place.at(-1))]: 1,
          });
      }),
      { numRuns: 3_000 },
    );
  });

  it.each([
    ["a task's name", '{"tasks":{"t":{},"t":{}},"samples":[]}', "/tasks/t"],
    [
      "an output",
      '{"tasks":{"t":{"test_cases":[{"input":"","output":"1","output":"2"}]}}}',
      "/tasks/t/test_cases/0/output",
    ],
    ["a sample's task", '{"samples":[{"task":"a","completion":"","task":"b"}]}', "/samples/0/task"],
    ["samples", '{"samples":[],"samples":[]}', "/samples"],
    [
      "an argument",
      '{"samples":[{"task":{"tests":{"inputs":[{"x~/":1,"x~/":2}]}}}]}',
      "/samples/0/task/tests/inputs/0/x~0~1",
    ],
  ])("is refused with its place: %s", async (_, body, pointer) => {
    const answer = await post(createTestApp(), body);
    expect(answer.status).toBe(422);
    const problem = await readProblem(answer);
    expect(problem.code).toBe("invalid_request");
    expect(problem.errors).toEqual([
      { pointer, detail: expect.stringMatching(/twice, at characters \d+ and \d+/) },
    ]);
  });
});

describe("numbers in tests that are an object", () => {
  const request = (place: "tasks" | "samples", tests: string) =>
    place === "tasks"
      ? `{"tasks":{"t":{"tests":${tests}}}}`
      : `{"samples":[{"completion":"1.0"},{"task":{"tests":${tests}}}]}`;
  const read = (tests: unknown) => {
    const reading = readTests(tests, { path: [], unpack: createUnpacker(), maxCases: 100 });
    return reading.kind === "ok" ? reading.tests : "refused";
  };
  const number = fc.oneof(
    fc.constantFrom(
      "1.0",
      "-0.0",
      "-0",
      "1e3",
      "1E+2",
      "100000000000000000001",
      "0.1",
      "7",
      "-12",
      "9007199254740993",
      "123456789012345.0",
    ),
    fc.integer().map(String),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
  );

  it.each(["tasks", "samples"] as const)("are those of the same tests as a text, in %s", async (place) => {
    const calls = fc.array(fc.tuple(number, number), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(calls, async (rows) => {
        const inputs = rows.map(([input]) => `[[${input}]]`);
        const outputs = rows.map(([, output]) => `{"x":${output}}`);
        const tests = `{"fn_name":"f","inputs":[${inputs}],"outputs":[${outputs}]}`;
        const body = new Request("http://x/", {
          ...{ method: "POST", headers: { "content-type": "application/json" }, body: request(place, tests) },
        });
        // biome-ignore lint/suspicious/noExplicitAny: what was just written
        const { value } = (await readJsonBody(body)) as { value: any };
        const found = place === "tasks" ? value.tasks.t.tests : value.samples[1].task.tests;
        expect(read(found)).toEqual(read(tests));
      }),
      { numRuns: 300 },
    );
  });
});
