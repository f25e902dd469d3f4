import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { RewardsAnswer } from "../../functions/api/answer-schemas.ts";
import { functionExamples } from "../../functions/tasks/examples/function-examples.ts";
import { stdinExamples } from "../../functions/tasks/examples/stdin-examples.ts";
import { createTestApp, post } from "../api/test-app.ts";
import { rowsUnder } from "./document-tables.ts";

const document = readFileSync(new URL("../../docs/tasks.md", import.meta.url), "utf8");

const rows = rowsUnder(document, "| comparison | expected | printed | right | why |");

describe("the documentation's examples of comparisons", () => {
  it.each(rows)("%s: %s, printed %s: %s", async (comparison, expected, printed, right) => {
    const task = {
      test_cases: [{ input: "", output: JSON.parse(expected ?? "") }],
      comparison: JSON.parse(comparison ?? ""),
    };
    const testApp = createTestApp({ script: () => ({ kind: "print", stdout: JSON.parse(printed ?? "") }) });
    const answer = await post(testApp, { samples: [{ task, completion: "```\nx\n```" }] });
    const { rewards } = RewardsAnswer.parse(await answer.json());
    expect(rewards).toEqual([right === "yes" ? 1 : 0]);
  });

  it("are there for every comparison", () => {
    const types = new Set(rows.map(([comparison]) => JSON.parse(comparison ?? "").type));
    expect(types).toEqual(
      new Set(["json", "text", "tokens", "numbers", "lines_unordered", "tokens_unordered"]),
    );
    expect(rows.length).toBeGreaterThan(25);
  });
});

describe("the documentation's list of shapes", () => {
  it("has every shape, and its kind", () => {
    const listed = rowsUnder(document, "| dataset and column | kind | example |").map(([, kind, name]) => [
      name,
      kind,
    ]);
    expect(listed).toEqual([...stdinExamples, ...functionExamples].map(({ name, kind }) => [name, kind]));
  });
});

describe("the documentation's task", () => {
  it("works as it stands", async () => {
    const [, json = ""] = /```json\n([^`]+)```/.exec(document) ?? [];
    const task = JSON.parse(json);
    const testApp = createTestApp({
      script: ({ input }) => ({ kind: "print", stdout: `${Number(input) / 2}` }),
    });
    const answer = await post(testApp, { samples: [{ task, completion: "```\nx\n```" }] });
    expect(await answer.json()).toMatchObject({ rewards: [1], results: [{ total: 2 }] });
  });
});
