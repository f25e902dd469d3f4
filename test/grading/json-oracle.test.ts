import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { prepareExpected } from "../../functions/grading/comparison.ts";
import { type JsonPair, makeJsonPairs } from "./json-pairs.ts";

const pairs = makeJsonPairs(20_000, 7);

function askCpython(questions: readonly JsonPair[]): string[] {
  const oracle = fileURLToPath(new URL("json_oracle.py", import.meta.url));
  const input = questions.map((pair) => `${JSON.stringify(pair)}\n`).join("");
  const answer = spawnSync("python3", ["-S", "-E", oracle], {
    input,
    encoding: "utf8",
    maxBuffer: 16 * 1_048_576,
    timeout: 40_000,
  });
  if (answer.error !== undefined || answer.status !== 0) {
    throw new Error(`CPython could not be asked: ${answer.error ?? answer.stderr}`);
  }
  return answer.stdout.trim().split("\n");
}

function judge([expected, stdout]: JsonPair): string {
  const prepared = prepareExpected({ type: "json" }, expected);
  if (prepared.kind === "unreadable") return "u";
  return prepared.matches(stdout) ? "1" : "0";
}

function countDepth(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const mark of text.replace(/"(?:[^"\\]|\\.)*"?/gs, "")) {
    if (mark === "[" || mark === "{") deepest = Math.max(deepest, ++depth);
    else if (mark === "]" || mark === "}") depth -= 1;
  }
  return deepest;
}

const TOP_LEVEL_DUPLICATE = /^\s*\{\s*("[^"\\]*")\s*:(?:.*,)?\s*\1\s*:/s;

describe("json comparison", () => {
  const truth = askCpython(pairs);

  it("agrees with CPython on generated pairs", () => {
    expect(truth.length).toBe(pairs.length);
    const disagreements = pairs.flatMap((pair, index) => {
      const ours = judge(pair);
      return ours === truth[index] ? [] : [{ pair, ours, cpython: truth[index] }];
    });
    expect(disagreements.slice(0, 5)).toEqual([]);
  });

  it.each([
    ["a negative integer zero", (text: string) => /-0(?![.\deE])/.test(text)],
    ["a float beyond the largest", (text: string) => /1e(?:400|999)/.test(text)],
    ["a key twice", (text: string) => TOP_LEVEL_DUPLICATE.test(text)],
    ["an integer of 5,000 digits", (text: string) => /(?<![.\d])\d{5000}/.test(text)],
    ["a byte order mark", (text: string) => text.startsWith("\ufeff")],
    ["an escaped surrogate", (text: string) => /\\u[dD][89a-fA-F]/.test(text)],
    ["a depth of 900 to 1,000", (text: string) => inRange(countDepth(text), 900, 1_000)],
    ["a depth of 1,001 to 1,100", (text: string) => inRange(countDepth(text), 1_001, 1_102)],
  ])("was asked about pairs with %s", (name, has) => {
    const count = pairs.filter((pair) => pair.some(has)).length;
    console.log(`${count} pairs with ${name}`);
    expect(count).toBeGreaterThan(0);
  });

  it("was asked about equal, unequal and unreadable values alike", () => {
    const count = (answer: string) => truth.filter((single) => single === answer).length;
    console.log(
      `${count("1")} equal, ${count("0")} unequal, ${count("u")} unreadable of ${truth.length} pairs`,
    );
    expect(count("1")).toBeGreaterThan(5_000);
    expect(count("0")).toBeGreaterThan(5_000);
    expect(count("u")).toBeGreaterThan(500);
  });
});

function inRange(value: number, low: number, high: number): boolean {
  return value >= low && value <= high;
}
