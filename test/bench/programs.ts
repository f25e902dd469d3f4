/** What the loads are made of: tasks, and right programs that nobody else sends (`variant` is in their text). */
import type { BenchTask } from "./contestant.ts";

export const benchTask: BenchTask = {
  test_cases: [
    { input: "[]", output: "{}" },
    { input: '[{"model": "a", "tokens": 12, "ok": true}]', output: '{"a": 12}' },
    {
      input: JSON.stringify(
        Array.from({ length: 20 }, (_, i) => ({ model: "abc"[i % 3], tokens: i, ok: i % 2 === 0 })),
      ),
      output: '{"a": 63, "b": 70, "c": 57}',
    },
  ],
};

const sumCases = Array.from({ length: 100 }, (_, i) => ({
  input: JSON.stringify([i, 1, 2]),
  output: `${i + 3}`,
}));
export const longTask: BenchTask = { test_cases: sumCases };
export const oneCaseTask: BenchTask = { test_cases: sumCases.slice(41, 42) };

/** A fenced program for `benchTask`. */
export function writeProgram(variant: number): string {
  return `\`\`\`python
import json
import sys

records = json.load(sys.stdin)
totals_${variant} = {}
for record in records:
    name = record["model"]
    totals_${variant}[name] = totals_${variant}.get(name, 0) + record["tokens"]
print(json.dumps(totals_${variant}))
\`\`\``;
}

/** A fenced program for `longTask` and `oneCaseTask`. */
export function writeSumProgram(variant: number): string {
  return `\`\`\`python
import json
import sys

numbers_${variant} = json.load(sys.stdin)
print(sum(numbers_${variant}))
\`\`\``;
}
