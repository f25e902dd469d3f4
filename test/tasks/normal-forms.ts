/** What the example of each shape comes to. */
import type { TaskTests } from "../../functions/tasks/normal-form.ts";

const sums: TaskTests = {
  kind: "stdin",
  cases: [
    { input: "1 2\n", output: "3\n" },
    { input: "40 2\n", output: "42\n" },
  ],
};

const calls = (mayBeWrapped: boolean): TaskTests => ({
  kind: "call",
  functionName: "add",
  cases: [
    { arguments: ["1", "2"], expected: mayBeWrapped ? "[3]" : "3", mayBeWrapped },
    { arguments: ["40", "2"], expected: mayBeWrapped ? "[42]" : "42", mayBeWrapped },
  ],
});

const statements = ["assert add(1, 2) == 3", "assert add(40, 2) == 42"];
const asserts = (before: string, setup: string, more: readonly string[] = []): TaskTests => ({
  kind: "asserts",
  cases: [...statements, ...more].map((statement) => ({ before, setup, statement })),
});

const checkSource =
  "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(40, 2) == 42\n";
const pytest: TaskTests = {
  kind: "pytest",
  source:
    "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n    assert add(40, 2) == 42\n",
};

export const normalForms: Readonly<Record<string, TaskTests>> = {
  list: sums,
  code_contests: sums,
  verification_info: sums,
  python_repr: sums,
  columns: sums,
  columns_of_lines: {
    kind: "stdin",
    cases: [
      { input: "1\n2", output: "3" },
      { input: "40 2", output: "42" },
    ],
  },
  ground_truth: sums,
  livecodebench: sums,
  livecodebench_packed: sums,
  packed: sums,
  deepcoder: sums,
  codeforces: sums,
  common_oj: sums,
  roll: sums,
  nemo_gym: sums,
  areal: sums,
  columns_call: calls(true),
  livecodebench_call: calls(false),
  verification_info_call: calls(true),
  deepcoder_call: calls(false),
  nemo_gym_call: calls(false),
  asserts: asserts("", ""),
  mbpp: asserts("", "import math"),
  mbpp_plus: asserts("import math", "", ["for n in range(9):\n    assert add(n, 1) == n + 1"]),
  assert_case: asserts("", ""),
  functional: { kind: "asserts", cases: [{ before: "", setup: "", statement: statements.join("\n") }] },
  roll_asserts: asserts("import math", ""),
  human_eval: { kind: "check_function", entryPoint: "add", before: "import math\n", source: checkSource },
  roll_check: { kind: "check_function", entryPoint: "add", before: "", source: checkSource },
  kodcode: pytest,
  pytest,
  pytest_file: pytest,
  codeforces_checker: {
    kind: "checked",
    cases: [{ input: "1 2\n", output: "1 2\n" }],
    checker:
      "import sys\nwanted = open(sys.argv[2]).read().split()\nfound = open(sys.argv[3]).read().split()\n" +
      "print(1 if sorted(found) == sorted(wanted) else 0)",
  },
};
