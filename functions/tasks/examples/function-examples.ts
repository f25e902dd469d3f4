/** Tests for programs that define a function: in each shape one that adds two numbers. */
import type { ShapeExample } from "./shape-example.ts";

const right = "def add(a, b):\n    return a + b";
const wrong = "def add(a, b):\n    return a - b";
const add = { right, wrong } as const;
const rightMethod = "class Solution:\n    def add(self, a, b):\n        return a + b";
const wrongMethod = "class Solution:\n    def add(self, a, b):\n        return a - b";
const asserts = ["assert add(1, 2) == 3", "assert add(40, 2) == 42"];
const check = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(40, 2) == 42\n";
const pytest =
  "from solution import add\n\ndef test_add():\n    assert add(1, 2) == 3\n    assert add(40, 2) == 42\n";

export const functionExamples: readonly ShapeExample[] = [
  {
    ...add,
    kind: "call",
    name: "columns_call",
    source: "APPS and TACO `input_output` with `fn_name`, a JSON text",
    tests: '{"fn_name": "add", "inputs": [[1, 2], [40, 2]], "outputs": [[3], [42]]}',
  },
  {
    kind: "call",
    right: rightMethod,
    wrong: wrongMethod,
    name: "livecodebench_call",
    source: "LiveCodeBench with `func_name`: one JSON value per line",
    tests: {
      public_test_cases: '[{"input": "1\\n2", "output": "3", "testtype": "functional"}]',
      private_test_cases: '[{"input": "40\\n2", "output": "42", "testtype": "functional"}]',
      metadata: '{"func_name": "add"}',
    },
  },
  {
    ...add,
    kind: "call",
    name: "verification_info_call",
    source: "verifiable coding problems of the type `function_call`",
    tests: {
      language: "python",
      test_cases: [
        { fn_name: "add", input: [1, 2], output: [3], type: "function_call" },
        { fn_name: "add", input: [40, 2], output: [42], type: "function_call" },
      ],
    },
  },
  {
    ...add,
    kind: "call",
    name: "deepcoder_call",
    source: "agentica-org/DeepCoder-Preview-Dataset `tests` of the type `functional`, a JSON text",
    tests: JSON.stringify([
      { input: "1\n2", output: "3", testtype: "functional", metadata: { func_name: "add" } },
      { input: "40\n2", output: "42", testtype: "functional", metadata: { func_name: "add" } },
    ]),
  },
  {
    ...add,
    kind: "call",
    name: "nemo_gym_call",
    source: "NeMo Gym `verifier_metadata` with `fn_name`",
    tests: { unit_tests: { inputs: ["1\n2", "40\n2"], outputs: ["3", "42"], fn_name: "add" } },
  },
  {
    ...add,
    kind: "asserts",
    name: "asserts",
    source: "TIGER-Lab/AceCode-87K `test_cases`, open-instruct `ground_truth`",
    tests: asserts,
  },
  {
    ...add,
    kind: "asserts",
    name: "mbpp",
    source: "MBPP `test_list`, `test_setup_code` and `challenge_test_list`",
    tests: { test_list: asserts, test_setup_code: "import math", challenge_test_list: [] },
  },
  {
    ...add,
    kind: "asserts",
    name: "mbpp_plus",
    source: "MBPP+ `test_imports`, `test_list` and `test`",
    tests: {
      test_imports: ["import math"],
      test_list: asserts,
      test: "for n in range(9):\n    assert add(n, 1) == n + 1",
    },
  },
  {
    ...add,
    kind: "asserts",
    name: "assert_case",
    source: "verl `ground_truth` with `assert_case`, a JSON text",
    tests: JSON.stringify({ inputs: ["", ""], outputs: [null, null], assert_case: asserts }),
  },
  {
    ...add,
    kind: "asserts",
    name: "functional",
    source: "code-r1 `ground_truth` with `functional`, a JSON text",
    tests: JSON.stringify({ functional: asserts.join("\n") }),
  },
  {
    ...add,
    kind: "asserts",
    name: "roll_asserts",
    source: "ROLL `test_cases` of the case type `assert`, a JSON text",
    tests: JSON.stringify(asserts.map((assert_code) => ({ assert_code, import_prefix: "import math" }))),
  },
  {
    ...add,
    kind: "check_function",
    name: "human_eval",
    source: "HumanEval `prompt`, `test` and `entry_point`",
    tests: { prompt: "import math\n", test: check, entry_point: "add" },
  },
  {
    ...add,
    kind: "check_function",
    name: "roll_check",
    source: "ROLL `test_cases` of the case type `check`, a JSON text",
    tests: JSON.stringify([{ assert_code: check, entry_point: "add" }]),
  },
  {
    ...add,
    kind: "pytest",
    name: "kodcode",
    source: "KodCode `test` and `test_info`",
    tests: { test: pytest, test_info: [{ function_name: "add", parameter_list: "(a, b)" }] },
  },
  {
    ...add,
    kind: "pytest",
    name: "pytest",
    source: "code-r1 `ground_truth` with `pytest`, a JSON text",
    tests: JSON.stringify({ pytest }),
  },
  {
    ...add,
    kind: "pytest",
    name: "pytest_file",
    source: "KodCode `test` alone",
    tests: pytest,
  },
  {
    kind: "checked",
    right: "print(*sorted(input().split(), reverse=True))",
    wrong: "print(1)",
    name: "codeforces_checker",
    source: "open-r1/codeforces `official_tests` with a `generated_checker`",
    tests: {
      official_tests: [{ input: "1 2\n", output: "1 2\n" }],
      input_mode: "stdio",
      generated_checker:
        "import sys\nwanted = open(sys.argv[2]).read().split()\nfound = open(sys.argv[3]).read().split()\n" +
        "print(1 if sorted(found) == sorted(wanted) else 0)",
    },
  },
];
