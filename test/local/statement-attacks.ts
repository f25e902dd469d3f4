/** Programs that want to pass tests in Python without an answer: `f(1)` should be 42. */

export interface StatementAttack {
  readonly name: string;
  readonly source: string;
}

const answer = "    return 42";

/** Instances say yes to whatever they are asked. */
const yes = `
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __contains__ = startswith = issubset = __lt__
    def __sub__(self, other): return 0.0
    __rsub__ = __add__ = __radd__ = __mul__ = __sub__
    def __abs__(self): return self
    def __hash__(self): return hash(42)
    def __bool__(self): return True
    def __float__(self): return 0.0
    def __getattr__(self, name): return lambda *a, **k: True
`;

const frames = `
import sys, gc
def f(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_globals.values()) + list(frame.f_locals.values()):
            if value == 42 and type(value) is int: return value
        frame = frame.f_back
    for thing in gc.get_objects():
        for value in list(thing.values()) if isinstance(thing, dict) else []:
            if isinstance(value, str) and "f(1) =" + "= 42" in value: return 6 * 7
    return 1
`;

const onEveryDescriptor = (words: string) =>
  `import os\ndef f(x):\n    for fd in range(3, 256):\n        try: os.write(fd, ${words})\n        except OSError: pass\n    return 1`;

export const statementAttacks: readonly StatementAttack[] = [
  { name: "sys.exit on load", source: "import sys\nsys.exit(0)" },
  { name: "os._exit on load", source: "import os\nos._exit(0)" },
  { name: "sys.exit", source: "import sys\ndef f(x): sys.exit(0)" },
  { name: "os._exit", source: "import os\ndef f(x): os._exit(0)" },
  { name: "quit", source: "def f(x): quit()" },
  {
    name: "atexit",
    source: "import atexit, os\natexit.register(lambda: os._exit(0))\ndef f(x): return None",
  },
  { name: "an object that says yes", source: `${yes}\ndef f(x): return Yes()` },
  { name: "an object for a function", source: `${yes}\nf = Yes()` },
  { name: "a list of what says yes", source: `${yes}\ndef f(x): return [Yes()]` },
  {
    name: "a number that equals everything",
    source:
      "class N(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\ndef f(x): return N(1)",
  },
  {
    name: "its own builtins",
    source:
      "import builtins\ndef abs(x): return 0\ndef set(x): return 1\ndef sorted(x): return 1\ndef len(x): return 42\nbuiltins.abs = abs\nbuiltins.AssertionError = Exception\ndef f(x): return 1.0",
  },
  {
    name: "its own modules",
    source:
      "import math, sys, types\nmath.isclose = lambda *a, **k: True\nsys.modules['pytest'] = types.ModuleType('pytest')\ndef isclose(*a): return True\ndef f(x): return 1",
  },
  {
    name: "tests of its own",
    source: "def check(candidate): pass\ndef test_f(): pass\ncandidate = 42\ndef f(x): return 1",
  },
  { name: "frames and objects", source: frames },
  { name: "an error that tests know", source: "def f(x): raise AssertionError('passed')" },
  { name: "the end of an iteration", source: "def f(x): raise StopIteration" },
  { name: "reports on every descriptor", source: onEveryDescriptor(`b'{"outcome": "passed"}\\n'`) },
  { name: "answers on every descriptor", source: onEveryDescriptor(`b'{"value": {"handle": 0}}\\n' * 9`) },
  { name: "values that can't be", source: onEveryDescriptor(`b'{"value": {"set": [[]]}}\\n'`) },
  {
    name: "lies about what it has",
    source: `import os\nfor fd in range(3, 256):\n    try: os.write(fd, b'{"raised": {"base": "AttributeError"}}\\n{"exception": "ValueError"}\\n' * 3)\n    except OSError: pass\ndef f(x): return 1`,
  },
  { name: "a module of its own", source: `${yes}\nmath = Yes()\ndef f(x): return 1` },
  { name: "an exception for a function", source: "class f(Exception): pass" },
  { name: "brackets without end", source: onEveryDescriptor("b'[' * 100000 + b'\\n'") },
  {
    name: "silence",
    source: "import os, time\ndef f(x):\n    os.closerange(3, 256)\n    time.sleep(100)",
  },
];

/** Programs that do the same, beside an answer. */
export const honestTwins: readonly StatementAttack[] = [
  { name: "sys.exit, not reached", source: `import sys\ndef f(x):\n${answer}\n    sys.exit(0)` },
  { name: "atexit", source: `import atexit, os\natexit.register(lambda: os._exit(1))\ndef f(x):\n${answer}` },
  { name: "an object that says yes", source: `${yes}\ndef f(x):\n    Yes() == 1\n${answer}` },
  {
    name: "its own builtins",
    source: `def abs(x): return 0\ndef sorted(x): return 1\ndef f(x):\n${answer}`,
  },
  { name: "its own modules", source: `import math\nmath.isclose = None\ndef f(x):\n${answer}` },
  {
    name: "tests of its own",
    source: `def check(candidate): assert False\ndef test_f(): assert False\ndef f(x):\n${answer}`,
  },
  { name: "frames and objects", source: `import gc, sys\ndef f(x):\n    gc.get_objects()\n${answer}` },
  { name: "answers printed", source: `def f(x):\n    print('{"value": 1}\\n' * 1000)\n${answer}` },
];

export const attackedTests: readonly { readonly name: string; readonly tests: unknown }[] = [
  { name: "an equality", tests: ["assert f(1) == 42"] },
  { name: "one the other way round", tests: ["assert 42 == f(1)"] },
  { name: "a distance", tests: ["assert abs(f(1) - 42.0) < 1e-6"] },
  {
    name: "isclose",
    tests: { test_list: ["assert math.isclose(f(1), 42.0)"], test_imports: ["import math"] },
  },
  { name: "isclose of a module that no test imports", tests: ["assert math.isclose(f(1), 42.0)"] },
  { name: "sets and sorting", tests: ["assert set([f(1)]) == {42} and sorted([f(1)]) == [42]"] },
  { name: "membership", tests: ["assert f(1) in (42, 43)"] },
  { name: "no inequality", tests: ["assert not f(1) != 42"] },
  {
    name: "check",
    tests: { prompt: "", entry_point: "f", test: "def check(candidate):\n    assert candidate(1) == 42\n" },
  },
  { name: "pytest", tests: "from solution import f\n\ndef test_f():\n    assert f(1) == 42\n" },
  {
    name: "names from everywhere",
    tests:
      "from math import *\nfrom solution import *\n\ndef test_f():\n    assert isclose(f(1), 42.0) and sqrt(4) == 2\n",
  },
  {
    name: "unittest",
    tests:
      "import unittest\nfrom solution import *\nclass TestF(unittest.TestCase):\n    def test_f(self):\n        self.assertEqual(f(1), 42)\n",
  },
];
