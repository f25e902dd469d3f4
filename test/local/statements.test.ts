/** Tests that are Python source, through the whole product over HTTP. */
import { describe, expect, it } from "vitest";
import { requestRewards, type SampleLine } from "../../functions/local/rewards-client.ts";
import { shareStack } from "./shared-stack.ts";
import { attackedTests, honestTwins, statementAttacks } from "./statement-attacks.ts";
import { statementRows } from "./statement-rows.ts";

const stack = shareStack();

interface Tested {
  readonly tests: unknown;
  readonly source: string;
}

async function gradeAll(programs: readonly Tested[]) {
  const samples = programs.map(({ tests, source }) => ({
    task: { tests },
    completion: `\`\`\`python\n${source}\n\`\`\``,
  }));
  const lines: SampleLine[] = [];
  await requestRewards(stack(), { samples }, (line) => lines.push(line));
  return lines.sort((a, b) => a.index - b.index);
}

describe("tests in Python", () => {
  it("give each program what it is worth", async () => {
    const found = (await gradeAll(statementRows)).map((line, index) => [
      statementRows[index]?.name,
      line.reward === null ? null : (line.verdicts?.[0]?.verdict ?? line.status),
    ]);
    expect(found).toEqual(statementRows.map(({ name, verdict }) => [name, verdict]));
  });

  it("that can't judge anybody say so, and are not tried again", async () => {
    const [line] = await gradeAll([{ tests: ["assert 1 == 1"], source: "x = 1" }]);
    expect(line).toMatchObject({
      reward: null,
      status: "fault",
      fault: { code: "invalid_task", detail: expect.stringContaining("for nothing"), retryable: false },
    });
  });
});

describe("programs that try to pass without an answer", () => {
  it.each(attackedTests)("get 0 from $name", async ({ tests }) => {
    const lines = await gradeAll(statementAttacks.map(({ source }) => ({ tests, source })));
    const found = lines.map(({ reward }, index) => [statementAttacks[index]?.name, reward]);
    expect(found).toEqual(statementAttacks.map(({ name }) => [name, 0]));
  });

  it.each(attackedTests)("and their honest twins 1 from $name", async ({ tests }) => {
    const lines = await gradeAll(honestTwins.map(({ source }) => ({ tests, source })));
    const found = lines.map(({ reward }, index) => [honestTwins[index]?.name, reward]);
    expect(found).toEqual(honestTwins.map(({ name }) => [name, 1]));
  });
});
