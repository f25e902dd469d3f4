/** A proxy gives a chunk the answer of another one: no reward is made of it. */
import { describe, expect, it } from "vitest";
import { callEndpoint, requestRewards } from "../../functions/local/rewards-client.ts";
import { useFaultyStack } from "./fault-table.ts";
import type { Rule } from "./proxy/rules.ts";

const behind = useFaultyStack();

const testCases = ["1", "2", "21"].map((input) => ({ input, output: String(Number(input) * 2) }));

/** Four programs that differ, so that each one runs. */
async function rewardsOf(source: (n: number) => string): Promise<readonly (number | null)[]> {
  const samples = [0, 1, 2, 3].map((n) => ({
    task: { test_cases: testCases },
    completion: `\`\`\`python\n${source(n)}\n\`\`\``,
  }));
  return (await requestRewards(behind().stack, { samples })).rewards;
}

const right = (n: number) => `print(int(input()) * 2)  # ${n}`;
const wrong = (n: number) => `print(-int(input()) - ${n})`;

/** What workers have said so far to chunks, to the end. */
const answersSoFar = () =>
  behind()
    .proxy.requests.filter(({ url, answer }) => url === "/v1/execute" && answer.includes('"summary"'))
    .map(({ answer }) => answer);

describe("four right programs have their rewards when their chunk is answered with", () => {
  it.each<[string, (own: string, another: string) => string]>([
    ["another batch's answer", (_, another) => another],
    ["another batch's answer, and then its own", (own, another) => another + own],
    [
      "its own answer, with another batch's ends",
      (own, another) => {
        const endsOf = (answer: string) => answer.split("\n").filter((line) => line.includes('"ended"'));
        const ends = endsOf(another);
        return endsOf(own).reduce((answer, line, at) => answer.replace(line, ends[at] ?? line), own);
      },
    ],
  ])("%s", async (_, mixUp) => {
    expect(await rewardsOf(wrong)).toEqual([0, 0, 0, 0]);
    const another = answersSoFar().at(-1) ?? "";
    expect(another).toContain('"ended"');
    const crossed: Rule = {
      path: "supervisor",
      match: { url: "/v1/execute", nth: 1 },
      fault: { kind: "rewrite", body: (own) => mixUp(own, another) },
    };
    const rule = behind().proxy.add(crossed);
    expect(await rewardsOf(right)).toEqual([1, 1, 1, 1]);
    expect(rule.injected).toHaveLength(1);
  });
});

describe("a sweep that is given another query's answer", () => {
  it("which found nothing, kills no worker", async () => {
    expect(await rewardsOf(right)).toEqual([1, 1, 1, 1]);
    const running = () => behind().e2bServer.sandboxCounts().running;
    const before = running();
    expect(before).toBeGreaterThan(0);
    const rule = behind().proxy.add({
      path: "table",
      match: { operation: "Query" },
      fault: { kind: "answer", status: 200, body: '{"Count":0,"Items":[],"ScannedCount":0}' },
    });
    await callEndpoint(behind().stack, "POST", "/local/sweep");
    expect(rule.injected.length).toBeGreaterThan(0);
    expect(running()).toBe(before);
  });
});
