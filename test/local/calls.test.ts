/** Tasks that call a function, through the whole product over HTTP. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { requestRewards, type SampleLine } from "../../functions/local/rewards-client.ts";
import { rowsUnder } from "../tasks/document-tables.ts";
import { callAttacks, EXPECTED_SECRET } from "./call-attacks.ts";
import { calledPrograms } from "./called-programs.ts";
import { shareStack } from "./shared-stack.ts";

const stack = shareStack();

interface Called {
  readonly source: string;
  readonly input: string;
  readonly output: string;
  readonly returns?: string;
  readonly tolerance?: unknown;
  readonly limits?: object;
}

function sampleOf({ source, input, output, returns, tolerance, limits = {} }: Called) {
  const comparison = tolerance === undefined ? {} : { comparison: { type: "json", tolerance } };
  const tests = {
    fn_name: "f",
    inputs: [input],
    outputs: [output],
    ...(returns === undefined ? {} : { returns }),
  };
  return { task: { tests, limits, ...comparison }, completion: `\`\`\`python\n${source}\n\`\`\`` };
}

async function gradeAll(programs: readonly Called[]) {
  const lines: SampleLine[] = [];
  await requestRewards(stack(), { samples: programs.map(sampleOf) }, (line) => lines.push(line));
  lines.sort((a, b) => a.index - b.index);
  return lines.map(({ reward, verdicts }) => ({ reward, verdict: verdicts?.[0]?.verdict }));
}

describe("what a function returns", () => {
  it("is compared as the documentation says", async () => {
    const document = readFileSync(new URL("../../docs/tasks.md", import.meta.url), "utf8");
    const rows = rowsUnder(document, "| `tolerance` | expected | returned | right | why |");
    expect(rows.length).toBeGreaterThan(10);
    const programs = rows.map(([tolerance = "", expected = "", returned]) => ({
      source: `def f():\n    return ${returned}`,
      input: "",
      output: expected,
      ...(tolerance === "" ? {} : { tolerance: JSON.parse(tolerance) }),
    }));
    const found = (await gradeAll(programs)).map(({ reward }, index) => [rows[index]?.[2], reward]);
    expect(found).toEqual(rows.map(([, , returned, right]) => [returned, right === "yes" ? 1 : 0]));
  });
});

describe("programs whose function is called", () => {
  it("get what they are worth", async () => {
    const found = await gradeAll(calledPrograms);
    expect(found.map(({ verdict }, index) => [calledPrograms[index]?.name, verdict])).toEqual(
      calledPrograms.map(({ name, verdict }) => [name, verdict]),
    );
  });
});

describe("programs that try to pass without an answer", () => {
  it("get 0, and their honest twins 1", async () => {
    const honest = `    return "${EXPECTED_SECRET}"`;
    const programs = callAttacks.flatMap(({ source, dishonest }) => [
      { source: source.replace("BODY", dishonest), input: "1", output: JSON.stringify(EXPECTED_SECRET) },
      { source: source.replace("BODY", honest), input: "1", output: JSON.stringify(EXPECTED_SECRET) },
    ]);
    const found = (await gradeAll(programs)).map(({ reward }) => reward);
    const pairs = callAttacks.map(({ name }, index) => [name, found[2 * index], found[2 * index + 1]]);
    expect(pairs).toEqual(callAttacks.map(({ name }) => [name, 0, 1]));
  });
});
