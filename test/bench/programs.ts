/** The load: right programs, each different from the others, for one task of three cases. */

export const benchTask = {
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

/** A fenced program that nobody else sends: `variant` is in its text. */
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
