/**
 * Requests as the interface's description shows them. Tests send each one, and get the rewards that it should get.
 */
import { functionExamples } from "../tasks/examples/function-examples.ts";
import type { ShapeExample } from "../tasks/examples/shape-example.ts";
import { stdinExamples } from "../tasks/examples/stdin-examples.ts";

export interface RequestExample {
  readonly summary: string;
  readonly value: { readonly tasks: object; readonly samples: readonly object[] };
}

/** A request as a reader would first try it. */
export const requestExample = {
  tasks: { double: { test_cases: [{ input: "3", output: "6" }] } },
  samples: [
    { task: "double", completion: "```python\nprint(2 * int(input()))\n```" },
    { task: "double", completion: [{ role: "assistant", content: "I don't know." }] },
  ],
};

/** Every field of a task, with what it does to a right program and to a wrong one. */
const settingsExample: RequestExample = {
  summary: "How outputs are compared, limited and scored",
  value: {
    tasks: {
      halves: {
        tests: { inputs: ["1", "2", "3"], outputs: ["0.5", "1.0", "1.5"] },
        comparison: { type: "numbers", tolerance: { absolute: 1e-6 } },
        limits: { time_limit: "2 seconds", memory_limit: 256 },
        scoring: { type: "threshold", threshold: 0.5, max_tests: 2 },
      },
    },
    samples: [
      { task: "halves", completion: fence("print(int(input()) / 2)") },
      { task: "halves", completion: fence("print(int(input()) // 2 + 9)") },
    ],
  },
};

/** By name: one per shape of tests, each with a right program and a wrong one. */
export const requestExamples: Readonly<Record<string, RequestExample>> = Object.fromEntries([
  ["test_cases", { summary: "Test cases of this interface", value: requestExample }],
  ["settings", settingsExample],
  ...[...stdinExamples, ...functionExamples].map(
    (example) => [example.name, describeShape(example)] as const,
  ),
]);

function describeShape({ name, source, tests, right, wrong }: ShapeExample): RequestExample {
  const samples = [right, wrong].map((program) => ({ task: name, completion: fence(program) }));
  return { summary: source, value: { tasks: { [name]: { tests } }, samples } };
}

function fence(program: string): string {
  return `\`\`\`python\n${program}\n\`\`\``;
}
