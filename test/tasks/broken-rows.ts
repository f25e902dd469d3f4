/** Rows that must not be guessed at: what is wrong, the tests, where it is, and a part of what is said. */
export type BrokenRow = readonly [name: string, tests: unknown, pointer: string, detail: string];

const pair = { input: "1", output: "2" };
const call = { input: "1", output: "2", fn_name: "f" };
const tooMany = Array.from({ length: 1_001 }, () => pair);
const deepText = `[${"[".repeat(2_000)}${"]".repeat(2_000)}]`;

export const brokenRows: readonly BrokenRow[] = [
  // Of every shape: nothing in it.
  ["null", null, "", "must be a list, an object, or a text of one of them, not null"],
  ["a number", 3, "", "not a number"],
  ["true", true, "", "not true or false"],
  ["an empty text, as APPS has", "", "", "is empty"],
  ["a text of blanks", " \n", "", "is empty"],
  ["an empty list", [], "", "holds no test case"],
  ["a text of an empty list", "[]", "", "holds no test case"],
  ["an empty object", {}, "", "holds no test case"],
  ["empty columns", { inputs: [], outputs: [] }, "/inputs", "holds no test case"],
  ["an empty list of verification_info", { test_cases: [] }, "/test_cases", "holds no test case"],
  [
    "no public and no private tests",
    { public_test_cases: "[]", private_test_cases: "[]" },
    "",
    "holds no test case",
  ],
  ["an empty list of official tests", { official_tests: [] }, "/official_tests", "holds no test case"],
  ["an empty ground truth", { style: "rule", ground_truth: "" }, "/ground_truth", "is empty"],
  ["empty unit tests", { unit_tests: {} }, "/unit_tests", "holds no test case"],
  ["empty asserts", { test_list: [] }, "", "holds no test case"],
  ["nothing but nulls", { test_cases: null, inputs: null }, "", "no field by which its shape could be told"],
  ["1,001 test cases", tooMany, "", "may have up to 1000 test cases, and has 1001"],
  [
    "1,001 columns",
    { inputs: tooMany.map(() => ""), outputs: tooMany.map(() => "1") },
    "/inputs",
    "has 1001",
  ],

  // Undecodable.
  ["a word", "hello", "", "is neither JSON"],
  ["JSON that is cut off", '[{"input": "1"', "", "is neither JSON (expected ',' or '}' at character 15)"],
  ["Python that is cut off", "[{'input': '1'", "", "nor what Python's repr writes"],
  ["Python that calls", "[open('x')]", "", "expected a literal at character 2"],
  ["nesting without end", deepText, "", "nested deeper"],
  ["a text of a number", "5", "", "not a number"],
  [
    "a text in a text in a text in a text",
    JSON.stringify(JSON.stringify(JSON.stringify('"[]"'))),
    "",
    "a text in a text",
  ],
  ["base64 of nothing known", "aGVsbG8gd29ybGQsIGhlbGxv", "", "is not base64 of a whole zlib stream"],
  [
    "broken private tests",
    { public_test_cases: [pair], private_test_cases: "[1," },
    "/private_test_cases",
    "neither JSON",
  ],
  ["broken metadata", { public_test_cases: [pair], metadata: "{" }, "/metadata", "neither JSON"],
  ["a broken ground truth", { ground_truth: "{" }, "/ground_truth", "neither JSON"],
  ["broken unit tests", { unit_tests: "{" }, "/unit_tests", "neither JSON"],

  // Contradictions.
  [
    "columns of different lengths",
    { inputs: ["1", "2"], outputs: ["1"] },
    "/outputs",
    "has 1 items, and 'inputs' has 2",
  ],
  ["inputs without outputs", { inputs: ["1"] }, "", "has no 'outputs'"],
  ["outputs without inputs", { outputs: ["1"] }, "", "no field by which its shape could be told"],
  ["columns that are texts", { inputs: "1", outputs: "2" }, "/inputs", "must be a list, not a number"],
  [
    "columns with a list beside them",
    { inputs: ["1"], outputs: ["2"], test_cases: [pair] },
    "/test_cases",
    "not known in this shape",
  ],
  [
    "an unknown field",
    { test_cases: [pair], checker: "x" },
    "/checker",
    "known are 'test_cases', 'fn_name', 'language'",
  ],
  [
    "tests that are elsewhere",
    { inputs: ["u"], outputs: ["v"], remote: true },
    "/remote",
    "must be in the request",
  ],
  ["another language", { language: "cpp", test_cases: [pair] }, "/language", "must be 'python'"],
  ["tests of files", { official_tests: [pair], input_mode: "file" }, "/input_mode", "must be 'stdio'"],
  [
    "an interactive task",
    { official_tests: [pair], interaction_format: "Ask." },
    "/interaction_format",
    "interactive",
  ],
  [
    "a case and a text",
    [pair, "assert f(1)"],
    "/1",
    "must be an object with an input and an output, not a text",
  ],
  ["an assert and a case", ["assert f(1)", pair], "/1", "must be a text, not an object"],
  ["a case that is a list", [["1", "2"]], "/0", "not a list"],
  ["a case without an input", [{ output: "1" }], "/0", "has none of 'input', 'stdin' and 'assert_code'"],
  ["a case without an output", [{ input: "1" }], "/0", "has no 'output'"],
  ["a case whose output is null", [{ input: "1", output: null }], "/0", "has no 'output'"],
  ["a case with an unknown field", [{ ...pair, points: 3 }], "/0/points", "is a field that is not known"],
  [
    "cases of two forms",
    [pair, { stdin: "1", expected_stdout: "2" }],
    "/1",
    "has 'stdin' where the first test case has 'input'",
  ],
  ["a case of two forms", [{ ...pair, stdin: "1" }], "/0/stdin", "is a field that is not known"],
  ["a case without what is expected", [{ stdin: "1" }], "/0", "has no 'expected_stdout'"],
  ["an input without its stdin", [{ input: {}, output: { stdout: "1" } }], "/0/input", "has no 'stdin'"],
  ["an output without its stdout", [{ input: { stdin: "" }, output: {} }], "/0/output", "has no 'stdout'"],
  [
    "an output with files",
    [{ input: { stdin: "" }, output: { stdout: "1", files: [] } }],
    "/0/output/files",
    "not known",
  ],
  [
    "an input that is a number",
    [{ input: 1, output: "2" }],
    "/0/input",
    "must be a text, or a list of lines, not a number",
  ],
  [
    "an output that is a number",
    { inputs: ["1"], outputs: [2] },
    "/outputs/0",
    "must be a text, or a list of lines",
  ],
  [
    "a line that is a number",
    { inputs: [["1", 2]], outputs: ["2"] },
    "/inputs/0/1",
    "must be a text, not a number",
  ],
  ["an input that is null", [{ input: null, output: "2" }], "/0", "has no 'input'"],
  ["a call's input that is null", { inputs: [null], outputs: ["2"], fn_name: "f" }, "/inputs/0", "not null"],
  ["an output that is null", { inputs: ["2"], outputs: [null] }, "/outputs/0", "not null"],
  [
    "columns of code_contests of different lengths",
    { public_tests: { input: ["1", "2"], output: ["1"] } },
    "/public_tests/output",
    "has 1 items, and 'input' has 2",
  ],
  [
    "code_contests without a test",
    { public_tests: { input: [], output: [] }, private_tests: null },
    "",
    "no test case",
  ],
  [
    "columns of code_contests that are none",
    { generated_tests: ["1"] },
    "/generated_tests",
    "must be an object",
  ],
  [
    "an unknown type",
    [
      { ...pair, type: "stdin" },
      { ...pair, type: "interactive" },
    ],
    "/1/type",
    "is no type of test",
  ],
  [
    "two types that differ",
    [{ ...call, type: "function_call", testtype: "stdin" }],
    "/0/testtype",
    "contradicts",
  ],
  [
    "stdin and calls mixed",
    [pair, call],
    "/1",
    "is a call of 'f', and the first test case is one that reads",
  ],
  ["calls of two functions", [call, { ...call, fn_name: "g" }], "/1", "is a call of 'g'"],
  [
    "stdin that names a function",
    [{ ...call, type: "stdin_stdout" }],
    "/0",
    "says that it reads standard input",
  ],
  ["a call of nothing", [{ ...pair, testtype: "functional" }], "/0", "nothing says which"],
  [
    "a call of nothing in the metadata",
    { public_test_cases: [{ ...pair, testtype: "functional" }], metadata: "{}" },
    "/public_test_cases/0",
    "nothing says which",
  ],
  [
    "two names of a function",
    [{ ...call, metadata: { func_name: "g" } }],
    "/0/metadata",
    "names another function",
  ],
  [
    "a function that is no name",
    { inputs: ["1"], outputs: ["2"], fn_name: "f; import os" },
    "/fn_name",
    "name of a Python function",
  ],
  [
    "a function that is a number",
    { inputs: ["1"], outputs: ["2"], fn_name: 3 },
    "/fn_name",
    "name of a Python function",
  ],
  [
    "asserts beside inputs",
    { inputs: ["1"], outputs: ["2"], assert_case: ["assert f(1) == 2"] },
    "/inputs/0",
    "stands beside 'assert_case'",
  ],

  // Calls that can't be kept exactly.
  [
    "a call's argument that is no JSON",
    [{ ...call, input: "1\nx" }],
    "/0/input",
    "must be JSON, one value per line",
  ],
  ["a call's output that is no JSON", [{ ...call, output: "x" }], "/0/output", "must be JSON"],
  ["a call's output that is a value", [{ ...call, output: 2 }], "/0/output", "as its input is a text"],
  [
    "arguments by name",
    [{ ...call, input: { n: 1 }, output: 2 }],
    "/0/input/n",
    "is a field that is not known",
  ],
  [
    "an expected value that is nested too deep to be met",
    JSON.stringify({ fn_name: "f", inputs: ["1"], outputs: [`${"[".repeat(101)}${"]".repeat(101)}`] }),
    "",
    "nested deeper than 100 levels",
  ],
  [
    "an argument that is nested too deep to be handed over",
    { fn_name: "f", inputs: [`${'{"a":'.repeat(101)}1${"}".repeat(101)}`], outputs: ["1"] },
    "/inputs/0",
    "nested deeper than 100 levels",
  ],
  ["a value that is not finite", [{ ...call, input: "NaN" }], "/0/input", "holds NaN"],

  // Source that tests nothing.
  ["a list of words", ["hello"], "/0", "asserts something"],
  ["a list of JSON texts", ['{"input": "assert", "output": "1"}'], "/0", "asserts something"],
  ["an assert that is blank", ["assert f(1)", " "], "/1", "asserts something"],
  ["MBPP without an assert", { test_list: ["f(1)"] }, "/test_list", "asserts something"],
  [
    "HumanEval without check",
    { test: "assert True", entry_point: "f" },
    "/test",
    "must define the function 'check'",
  ],
  ["HumanEval without tests", { entry_point: "f" }, "/test", "asserts something"],
  [
    "HumanEval with a broken name",
    { test: "def check(f): assert f", entry_point: "a.b" },
    "/entry_point",
    "name of a Python function",
  ],
  ["a pytest file without tests", { test: "assert True" }, "/test", "whose name begins with 'test'"],
  ["a pytest file without asserts", { pytest: "def test_f():\n    pass" }, "/pytest", "asserts something"],
  ["an empty program", { functional: "" }, "/functional", "asserts something"],
  [
    "ROLL with two pytest files",
    [{ assert_code: "def test_a(): assert 1" }, { assert_code: "def test_b(): assert 1" }],
    "/0",
    "one test case",
  ],
  [
    "a checker beside asserts",
    { official_tests: ["assert f(1)"], generated_checker: "print(1)" },
    "/generated_checker",
    "no output to check",
  ],
];

/** The same, inside a text, where no pointer leads: it stays at the text, and the rest is said. */
export const brokenTexts: readonly BrokenRow[] = [
  [
    "a case in a JSON text",
    JSON.stringify([pair, { input: "1" }]),
    "",
    "at /1 of what it holds: has no 'output'",
  ],
  [
    "a case in a Python text",
    "[{'input': '1', 'output': 2}]",
    "",
    "at /0/output of what it holds: must be a text",
  ],
  [
    "columns in a JSON text",
    '{"inputs": ["1"], "outputs": []}',
    "",
    "at /outputs of what it holds: holds no test case",
  ],
  [
    "a case of the private tests",
    { public_test_cases: [pair], private_test_cases: '[{"input": "1"}]' },
    "/private_test_cases",
    "at /0 of what it holds: has no 'output'",
  ],
  [
    "a text in a text",
    JSON.stringify({ ground_truth: '{"inputs": [1], "outputs": ["1"]}' }),
    "",
    "at /ground_truth/inputs/0 of what it holds: must be a text",
  ],
];
