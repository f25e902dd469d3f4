/** Tests in Python with a program each that does not pass them, mostly. */
import { check, one, pytest, type StatementRow, swallowing } from "./statement-parts.ts";

export const wrong: readonly StatementRow[] = [
  {
    name: "a failed assert in a block that swallows exceptions",
    tests: ["with Quiet(17) as value:\n    assert value == 18"],
    source: swallowing,
    verdict: "wrong_output",
  },
  {
    name: "a failed check by hand in a block that swallows exceptions",
    tests: ["with Quiet(17) as value:\n    if value != 18:\n        raise ValueError(value)"],
    source: swallowing,
    verdict: "wrong_output",
  },
  {
    name: "a wrong answer that Python's library stumbles over in a block that swallows exceptions",
    tests: ["import json\nwith Quiet('{') as value:\n    assert json.loads(value) == {}"],
    source: swallowing,
    verdict: "wrong_output",
  },
  {
    name: "a failed assert in a block that swallows exceptions, of pytest's",
    tests: pytest("def test_a():\n    with Quiet(17) as value:\n        if value != 18: pytest.fail()"),
    source: swallowing,
    verdict: "wrong_output",
  },
  {
    name: "an exception of the program's in a block that swallows it",
    tests: ["quiet = Quiet(17)\nwith quiet:\n    assert quiet.get() == 1"],
    source: swallowing,
    verdict: "runtime_error",
  },
  {
    name: "a wrong answer that the test stumbles over in a block that swallows it",
    tests: ["quiet = Quiet(17)\nwith quiet:\n    assert quiet.value[0] == 1"],
    source: swallowing,
    verdict: "wrong_output",
  },
  {
    name: "a failed assert that the block's end turns into what the test expects",
    tests: pytest(
      "def test_a():\n    with pytest.raises(ValueError):\n        with Loud():\n            assert f(1) == 2",
    ),
    source:
      "class Loud:\n    def __enter__(self): pass\n    def __exit__(self, *_): raise ValueError\ndef f(x): return x",
    verdict: "wrong_output",
  },
  {
    name: "a Counter of its own, where the tests forgot to import theirs",
    tests: ["assert Counter(f(3)) == Counter([1, 2, 2])"],
    source: "def Counter(x): return 0\ndef f(x): return 0",
    verdict: "wrong_output",
  },
  {
    name: "an isclose of its own, in a check",
    tests: check("assert isclose(candidate(3), 4.5)"),
    source: "def isclose(*_): return True\ndef f(x): return x",
    verdict: "wrong_output",
  },
  {
    name: "a Counter of its own, behind a star",
    tests: pytest("def test_a(): assert Counter(f(3)) == Counter([1, 2, 2])"),
    source: "def Counter(x): return 0\ndef f(x): return 0",
    verdict: "wrong_output",
  },
  {
    name: "a constant that is an object",
    tests: ["assert LIMIT == 3"],
    source: "LIMIT = object()",
    verdict: "wrong_output",
  },
  {
    name: "an object where the test slices a list",
    tests: ["assert f(3)[1:] == [2, 3]"],
    source: "class Mine(list): pass\ndef f(x): return Mine([1, 2])",
    verdict: "wrong_output",
  },
  {
    name: "what is no exception, and should be raised",
    tests: pytest("def test_a():\n    with pytest.raises(MyError): f(1)"),
    source: "class MyError: pass\ndef f(x): return x",
    verdict: "wrong_output",
  },
  {
    name: "what is no exception, and should be raised, by unittest",
    tests: pytest(
      "import unittest\nclass TestF(unittest.TestCase):\n    def test_a(self):\n        with self.assertRaises(MyError): f(1)",
    ),
    source: "MyError = 3\ndef f(x): return x",
    verdict: "wrong_output",
  },
  {
    name: "an annotation's name that is asked for, and that only Python has",
    tests: ["assert List == 3 or True\nassert Optional(1)"],
    source: "x = 1",
    verdict: "runtime_error",
  },
  {
    name: "a method that the class lacks",
    tests: {
      prompt: "",
      entry_point: "Solution().add",
      test: "def check(candidate): assert candidate(1, 2) == 3",
    },
    source: "class Solution: pass",
    verdict: "runtime_error",
  },
  {
    name: "a date that is none",
    tests: ["import datetime\nassert f(1) == datetime.date(2020, 1, 1)"],
    source:
      "import datetime\nclass Day(datetime.date):\n    def __eq__(self, other): return True\n    __hash__ = datetime.date.__hash__\n    def isoformat(self): return '2020-01-01'\ndef f(x): return Day(1999, 1, 1)",
    verdict: "wrong_output",
  },
  {
    name: "an inherited test",
    tests: pytest(
      "class Base:\n    def test_a(self): assert f(1) == 2\nclass TestF(Base):\n    def test_b(self): assert f(2) == 2",
    ),
    source: "def f(x): return x",
    verdict: "wrong_output",
  },
  {
    name: "a file that skips itself once it has seen a wrong answer",
    tests: pytest("if f(1) != 2: pytest.skip('no', allow_module_level=True)\ndef test_a(): assert f(2) == 2"),
    source: "def f(x): return x",
    verdict: "wrong_output",
  },
  {
    name: "a test that skips its rest once it has seen a wrong answer",
    tests: pytest("def test_a():\n    if f(1) != 2: pytest.skip()\ndef test_b(): assert f(2) == 2"),
    source: "def f(x): return x",
    verdict: "wrong_output",
  },
  {
    name: "nothing raised",
    tests: pytest("def test_a():\n    with pytest.raises(ValueError): f(1)"),
    source: "def f(x): return 1",
    verdict: "wrong_output",
  },
  {
    name: "one parameter of several",
    tests: pytest("@pytest.mark.parametrize('a', [1, 2, 3])\ndef test_a(a): assert f(a) == a"),
    source: "def f(a): return min(a, 2)",
    verdict: "wrong_output",
  },
  {
    name: "a list changed in place to be compared with itself",
    tests: ["x = [3, 1, 2]\nassert f(x) == sorted(x)"],
    source: "def f(x):\n    x.clear()\n    return []",
    verdict: "wrong_output",
  },
  { name: "a wrong answer", tests: one, source: "def f(x): return 2", verdict: "wrong_output" },
  {
    name: "an answer of the wrong type",
    tests: ["assert f(1)[0] == 2"],
    source: "def f(x): return x",
    verdict: "wrong_output",
  },
  {
    name: "a name that is missing, and not needed",
    tests: ["assert f(1) == 1 or g(1)"],
    source: "def f(x): return x",
    verdict: "passed",
  },
  {
    name: "an exit that the test overlooks",
    tests: ["try:\n    f(1)\nexcept:\n    pass\nassert True"],
    source: "import sys\ndef f(x): sys.exit()",
    verdict: "wrong_output",
  },
  { name: "an exception", tests: one, source: "def f(x): return x / 0", verdict: "runtime_error" },
  {
    name: "no such function",
    tests: check("assert candidate(1) == 2"),
    source: "def g(x): return x",
    verdict: "runtime_error",
  },
  { name: "no such name", tests: one, source: "def g(x): return x", verdict: "runtime_error" },
  {
    name: "no such import",
    tests: pytest("from solution import f\ndef test_f(): assert f(1)"),
    source: "g = 1",
    verdict: "runtime_error",
  },
  { name: "a program that fails before", tests: one, source: "1 / 0", verdict: "runtime_error" },
  {
    name: "an exit that says failure",
    tests: one,
    source: "import sys\ndef f(x): sys.exit(3)",
    verdict: "runtime_error",
  },
  {
    name: "a crash",
    tests: one,
    source: "import ctypes\ndef f(x): ctypes.string_at(0)",
    verdict: "signaled",
  },
  {
    name: "a sleep without end",
    tests: one,
    source: "import time\ndef f(x): time.sleep(1000)",
    verdict: "time_limit",
  },
  {
    name: "too much printed",
    tests: one,
    source: "def f(x):\n    print('x' * 100_000)\n    return 1",
    verdict: "output_limit",
  },
  { name: "no Python", tests: one, source: "def f(x) return 1", verdict: "syntax_error" },
];
