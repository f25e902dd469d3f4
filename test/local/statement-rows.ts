/** Tests in Python with a program each, and the verdict; null where the task is at fault. */
import { right } from "./right-statements.ts";
import { check, pytest, type StatementRow } from "./statement-parts.ts";
import { wrong } from "./wrong-statements.ts";

const invalid: readonly (readonly [name: string, tests: unknown])[] = [
  ["a test without a call", ["assert 1 == 1"]],
  ["a test that is no Python", ["assert f(1) = 2"]],
  ["a module that isn't there", ["import no_such_module\nassert f(1) == 2"]],
  ["a setup that fails", { test_list: ["assert f(1) == 1"], test_setup_code: "x = 1 / 0" }],
  ["a function that is handed over", ["assert f(lambda x: x) == 1"]],
  ["a fixture that isn't there", pytest("def test_a(capsys): assert f(1) == 1")],
  ["a module that nobody has, under its short name", ["assert np.isclose(f(1), 1)"]],
  ["a file with a coroutine", pytest("async def test_a(): assert f(1) == 1\ndef test_b(): assert f(1) == 1")],
  ["a file without tests", pytest("class Other:\n    def test_a(self): assert f(1) == 1")],
  ["tests that end their process", check("import os\nassert candidate(1) == 1\nos._exit(0)")],
];

export const statementRows: readonly StatementRow[] = [
  ...right.map((row) => ({ ...row, verdict: "passed" })),
  ...wrong,
  ...invalid.map(([name, tests]) => ({ name, tests, source: "def f(x): return 1", verdict: null })),
];
