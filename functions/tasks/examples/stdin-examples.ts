/** Tests for programs that read standard input: in each shape the sum of the numbers that are read. */
import type { ShapeExample } from "./shape-example.ts";

const right = "import sys\nprint(sum(map(int, sys.stdin.read().split())))";
const wrong = "print(sum(map(int, input().split())) + 1)";
const sum = { kind: "stdin", right, wrong } as const;

const columns = { inputs: ["1 2\n", "40 2\n"], outputs: ["3\n", "42\n"] };

/** What `base64.b64encode(zlib.compress(pickle.dumps(text)))` makes of a list of two test cases in JSON. */
const packed =
  "eJxrYJlaxQABPWXR1UqZeQWlJUpWCkqGCkYxeUo6Ckr5pSVQIWOIQElqcUlJZUEqSKi4JCUzT6lWRwFJp4kBplYTI5x6Y6foAQC12CbM";

export const stdinExamples: readonly ShapeExample[] = [
  {
    ...sum,
    name: "list",
    source: "open-r1/codeforces `official_tests`, open-instruct `ground_truth`, and whoever keeps pairs",
    tests: [
      { input: "1 2\n", output: "3\n" },
      { input: "40 2\n", output: "42\n" },
    ],
  },
  {
    ...sum,
    name: "code_contests",
    source: "deepmind/code_contests: an object of `public_tests`, `private_tests` and `generated_tests`",
    tests: {
      public_tests: { input: ["1 2\n"], output: ["3\n"] },
      private_tests: { input: [], output: [] },
      generated_tests: { input: ["40 2\n"], output: ["42\n"] },
    },
  },
  {
    ...sum,
    name: "verification_info",
    source: "open-r1/verifiable-coding-problems-python `verification_info`",
    tests: {
      language: "python",
      test_cases: [
        { fn_name: null, input: "1 2\n", output: "3\n", type: "stdin_stdout" },
        { fn_name: null, input: "40 2\n", output: "42\n", type: "stdin_stdout" },
      ],
    },
  },
  {
    ...sum,
    name: "python_repr",
    source: "PrimeIntellect/verifiable-coding-problems `verification_info`, what Python's `repr` writes",
    tests:
      "{'language': 'python', 'test_cases': [{'fn_name': None, 'input': '1 2\\n', 'output': '3\\n', " +
      "'type': 'stdin_stdout'}, {'fn_name': None, 'input': '40 2\\n', 'output': '42\\n', 'type': 'stdin_stdout'}]}",
  },
  {
    ...sum,
    name: "columns",
    source: "APPS and TACO `input_output`, verl and code-r1 `ground_truth`, a JSON text",
    tests: JSON.stringify(columns),
  },
  {
    ...sum,
    name: "columns_of_lines",
    source: "TACO `input_output`, where inputs and outputs are lists of lines",
    tests: { inputs: [["1", "2"], ["40 2"]], outputs: [["3"], ["42"]] },
  },
  {
    ...sum,
    name: "ground_truth",
    source: "PRIME-RL/Eurus-2-RL-Data `reward_model`",
    tests: { style: "rule", ground_truth: JSON.stringify(columns) },
  },
  {
    ...sum,
    name: "livecodebench",
    source: "LiveCodeBench `public_test_cases`, `private_test_cases` and `metadata`, JSON texts",
    tests: {
      public_test_cases: '[{"input": "1 2\\n", "output": "3\\n", "testtype": "stdin"}]',
      private_test_cases: '[{"input": "40 2\\n", "output": "42\\n", "testtype": "stdin"}]',
      metadata: "{}",
    },
  },
  {
    ...sum,
    name: "livecodebench_packed",
    source: "LiveCodeBench `private_test_cases`, packed; it is read without being unpickled",
    tests: { public_test_cases: "[]", private_test_cases: packed, metadata: "{}" },
  },
  {
    ...sum,
    name: "packed",
    source: "open-instruct `ground_truth`, packed in the same way",
    tests: packed,
  },
  {
    ...sum,
    name: "deepcoder",
    source: "agentica-org/DeepCoder-Preview-Dataset `tests`, a JSON text",
    tests: JSON.stringify([
      { input: "1 2\n", output: "3\n", testtype: "stdin", metadata: { func_name: null } },
      { input: "40 2\n", output: "42\n", testtype: "stdin", metadata: { func_name: null } },
    ]),
  },
  {
    ...sum,
    name: "codeforces",
    source: "open-r1/codeforces `official_tests`, `input_mode` and `generated_checker`",
    tests: {
      official_tests: [
        { input: "1 2\n", output: "3\n" },
        { input: "40 2\n", output: "42\n" },
      ],
      input_mode: "stdio",
      generated_checker: null,
    },
  },
  {
    ...sum,
    name: "common_oj",
    source: "SandboxFusion CommonOJ `test`",
    tests: [
      { input: { stdin: "1 2\n" }, output: { stdout: "3\n" } },
      { input: { stdin: "40 2\n" }, output: { stdout: "42\n" } },
    ],
  },
  {
    ...sum,
    name: "roll",
    source: "ROLL `test_cases` of the case type `input`, a JSON text",
    tests:
      '[{"stdin": "1 2\\n", "expected_stdout": "3\\n"}, {"stdin": "40 2\\n", "expected_stdout": "42\\n"}]',
  },
  {
    ...sum,
    name: "nemo_gym",
    source: "NeMo Gym `verifier_metadata`",
    tests: { unit_tests: columns },
  },
  {
    ...sum,
    name: "areal",
    source: "AReaL `input_output`, a JSON text",
    tests: JSON.stringify({ ...columns, remote: false }),
  },
];
