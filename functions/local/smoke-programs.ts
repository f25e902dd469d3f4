/** The fixed batch of the smoke test: one task, five completions, a known reward for each. */

export const smokeTask = {
  test_cases: [
    { input: "[]", output: '{"count": 0, "tokens": 0}' },
    { input: '[{"model": "a", "tokens": 12}]', output: '{"count": 1, "tokens": 12}' },
    {
      input: '[{"model": "a", "tokens": 5}, {"model": "b", "tokens": 7}, {"model": "a", "tokens": 30}]',
      output: '{"count": 3, "tokens": 42}',
    },
  ],
  limits: { time_ms: 1000 },
} as const;

function fence(source: string): string {
  return `Here is the program.\n\n\`\`\`python\n${source}\n\`\`\`\n`;
}

const correct = `import json, sys

records = json.load(sys.stdin)
print(json.dumps({"tokens": sum(r["tokens"] for r in records), "count": len(records)}))`;

const wrong = `import json, sys

records = json.load(sys.stdin)
print(json.dumps({"tokens": len(records), "count": -1}))`;

const partial = `import json, sys

records = json.load(sys.stdin)
print(json.dumps({"tokens": 0, "count": 0}))`;

const syntaxError = `import json, sys

print(json.dumps({"tokens": 0, "count": 0)`;

const timeout = `while True:
    pass`;

export const smokeCompletions = {
  correct: fence(correct),
  wrong: fence(wrong),
  partial: fence(partial),
  syntax_error: fence(syntaxError),
  timeout: fence(timeout),
} as const;

export const smokeRewards: Readonly<Record<keyof typeof smokeCompletions, number>> = {
  correct: 1,
  wrong: 0,
  partial: 1 / 3,
  syntax_error: 0,
  timeout: 0,
};
