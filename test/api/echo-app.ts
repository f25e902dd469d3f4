/** The app over scripted workers, each of which must have been released once when its test is over. */
import { afterEach, expect } from "vitest";
import { RewardsAnswer, StreamLine } from "../../functions/api/answer-schemas.ts";
import { obey, type ScriptedWorkers } from "../rewards/scripted-workers.ts";
import { createTestApp, post, type TestApp, type TestAppOptions } from "./test-app.ts";

const started: ScriptedWorkers[] = [];

export function start(options: TestAppOptions = {}): TestApp {
  const testApp = createTestApp(options);
  started.push(testApp.workers);
  return testApp;
}

afterEach(() => {
  for (const { leases } of started.splice(0)) {
    for (const lease of leases) expect(lease.released, "each worker is released once").toHaveLength(1);
  }
});

export const threeCases = ["0", "1", "2"].map((text) => ({ input: text, output: text }));

export function requestFor(sources: readonly string[], options: Record<string, unknown> = {}) {
  const samples = sources.map((source) => ({ task: "t", completion: `\`\`\`python\n${source}\n\`\`\`` }));
  return { tasks: { t: { test_cases: threeCases } }, samples, options };
}

export async function answerTo(testApp: TestApp, body: unknown) {
  const answer = await post(testApp, body);
  expect(answer.status).toBe(200);
  return RewardsAnswer.parse(await answer.json());
}

export async function readLines(answer: Response) {
  const text = await answer.text();
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => StreamLine.parse(JSON.parse(line)) as Record<string, unknown>);
}

export const twoOfThree: TestAppOptions = {
  script: (turn) => {
    if (turn.job.source.startsWith("starved"))
      return { kind: "end", end: { kind: "starved", detail: "0.1 s of 2 s" } };
    if (turn.job.source.startsWith("third") && turn.input !== "0") return { kind: "print", stdout: "7" };
    return obey(turn);
  },
};
