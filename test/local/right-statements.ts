/** Tests in Python with a program each that passes them. */
import { check, pytest, type StatementRow, swallowing } from "./statement-parts.ts";

const stack = `
class Stack:
    def __init__(self): self.items = []
    def push(self, x): self.items.append(x)
    def pop(self): return self.items.pop()
    size = property(lambda self: len(self.items))
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __str__(self): return self.name
    def __eq__(self, o): return self.items == o.items
    def __add__(self, o): return self
`;

export const right: readonly Omit<StatementRow, "verdict">[] = [
  {
    name: "plain values of every type, both ways",
    tests: [
      "for x in (None, True, 1, 2.5, 'é', b'x', [1, (2,)], {1: {2}}, frozenset([3]), 1j, 10 ** 5000, float('inf')):\n    assert f(x) == x and type(f(x)) is type(x)",
    ],
    source: "def f(x): return x",
  },
  {
    name: "what is raised, by a builtin's name and by one of its own",
    tests: pytest(
      "class TestIt:\n    def test_a(self):\n        with pytest.raises(ValueError, match='no 1'): f(1)\n        with pytest.raises(Mine) as e: f(2)\n        assert 'no 2' in str(e.value)\n        pytest.raises(LookupError, f, 3)",
    ),
    source:
      "class Mine(Exception): pass\ndef f(x): raise {1: ValueError, 2: Mine, 3: KeyError}[x](f'no {x}')",
  },
  {
    name: "fixtures, parameters, approx",
    tests: pytest(
      "@pytest.fixture\ndef two():\n    yield 2\n@pytest.mark.parametrize('a, b', [(1, 3), (2, 4.0)])\ndef test_a(a, b, two):\n    assert f(a, two) == pytest.approx(b)\n@pytest.mark.slow\ndef test_b(): assert f(0.1, 0.2) == pytest.approx(0.3)",
    ),
    source: "def f(a, b): return a + b",
  },
  {
    name: "objects of a class",
    tests: pytest(
      "def test_a():\n    s = Stack()\n    s.push(1); s.push([2])\n    assert len(s) == 2 and s.pop() == [2] and s.size == 1 and list(s) == [1]\n    s.name = 'x'\n    assert str(s) == 'x' and isinstance(s, Stack) and not isinstance(3, Stack)\n    assert Stack() == Stack() and s != Stack()\n    with pytest.raises(IndexError): Stack().pop()\n    assert s + s == s",
    ),
    source: stack,
  },
  {
    name: "generators, closures, keywords, constants",
    tests: ["assert list(f(3)) == [0, 1, 2] and g(2)(3) == 5 and h(a=1, b=2) == [1, 2] and LIMIT == 7"],
    source:
      "LIMIT = 7\ndef f(n): yield from range(n)\ndef g(a): return lambda b: a + b\ndef h(b, a): return [a, b]",
  },
  {
    name: "a list changed in place",
    tests: ["x = [3, 1, 2]\nassert f(x) is None\nassert x == [1, 2, 3]"],
    source: "def f(x): x.sort()",
  },
  {
    name: "linked nodes that the setup makes of the program's class",
    tests: {
      test_list: ["assert f(root) == 6"],
      test_setup_code: "root = Node(1)\nroot.next = Node(2)\nroot.next.next = Node(3)",
    },
    source:
      "class Node:\n    def __init__(self, v): self.v, self.next = v, None\ndef f(n): return n.v + f(n.next) if n else 0",
  },
  {
    name: "a function with a builtin's name",
    tests: ["assert sum(10, 15) == 6"],
    source: "def sum(a, b): return 6",
  },
  {
    name: "helpers of a prompt, which the tests use too",
    tests: check(
      "assert candidate(helper(2)) == 5",
      'import math\ndef helper(x): return x * 2\ndef f(x):\n    """stub"""\n',
    ),
    source: "def f(x): return helper(1) + x - 1",
  },
  {
    name: "a function by its name, with a reference beside it",
    tests: check(
      "import random\nref = lambda n: n * n\nfor _ in range(50):\n    n = random.randrange(99)\n    assert f(n) == ref(n), n",
    ),
    source: "def f(x): return x * x",
  },
  {
    name: "a context manager that swallows what the test raises",
    tests: [
      "with Quiet(1) as value:\n    assert value == 1\n    raise ValueError('no')\nwith Quiet(2):\n    {}['no']\nassert Quiet(3).value == 3",
    ],
    source: swallowing,
  },
  {
    name: "names of Python's library that the tests forgot to import",
    tests: [
      "assert Counter(f('aab')) == Counter({'a': 2, 'b': 1}) and isclose(sqrt(len(f('ab'))), 2 ** 0.5)\nx: List[int] = []\nassert list(chain(f('a'), x)) == ['a']",
    ],
    source: "def f(x): return list(x)\ndef Counter(x): return 1 / 0\ndef chain(*x): return 1 / 0",
  },
  {
    name: "functions whose names Python's library has, too",
    tests: [
      "assert product(2, 3) == 6",
      "assert gcd(4, 6) == 2 and lcm(4, 6) == 12",
      "assert isclose(hypot(3, 4), 5.0)",
    ],
    source:
      "def product(a, b): return a * b\ndef gcd(a, b): return a if b == 0 else gcd(b, a % b)\ndef lcm(a, b): return a * b // gcd(a, b)\ndef hypot(a, b): return (a * a + b * b) ** 0.5\ndef isclose(a, b): return 1 / 0",
  },
  {
    name: "a class whose name Python's library has, too",
    tests: pytest("def test_a():\n    c = Counter()\n    c.add(2)\n    assert c.total == 2"),
    source: "class Counter:\n    total = 0\n    def add(self, n): self.total += n",
  },
  {
    name: "a method of a new object, as a check's entry point",
    tests: {
      prompt: "from typing import *",
      entry_point: "Solution().add",
      test: "def check(candidate):\n    assert candidate(a=1, b=2) == 3\n    assert candidate(2, 2) == 4\n",
    },
    source: "class Solution:\n    def add(self, a: int, b: int) -> int: return a + b",
  },
  {
    name: "a function named solution",
    tests: "def test_a():\n    assert solution(2) == 4\n",
    source: "def solution(n): return n * 2",
  },
  {
    name: "types and functions of Python's own as arguments",
    tests: [
      "assert keep([1, 'a', 2.5], str) == ['a'] and keep([1, 'a'], (int, float)) == [1] and apply(len, 'ab') == 2",
    ],
    source: "def keep(xs, t): return [x for x in xs if isinstance(x, t)]\ndef apply(f, x): return f(x)",
  },
  {
    name: "annotations that the program forgot to import",
    tests: {
      functional:
        "def check(candidate):\n    assert candidate(nums=[3, 1, 5]) == 9\n\ncheck(Solution().total)",
    },
    source:
      "class Solution:\n    def total(self, nums: List[int], best: Optional[int] = None) -> int: return sum(nums)",
  },
  {
    name: "asserts with the function's name beside them, as in verl",
    tests: {
      fn_name: "f",
      assert_case: ["assert f(1) == 2", "assert f(2) == 3"],
      inputs: ["", ""],
      outputs: [null, null],
    },
    source: "def f(x): return x + 1",
  },
  {
    name: "values of Python's library, both ways",
    tests: [
      `import array, datetime as d, decimal, fractions, uuid
from collections import deque
values = [decimal.Decimal("1.50"), fractions.Fraction(1, 3), d.date(2020, 2, 29), d.datetime(2020, 1, 1, 2, 3, 4, 5),
    d.datetime(2020, 1, 1, tzinfo=d.timezone.utc), d.time(1, 2, 3), d.timedelta(days=-1, seconds=5), uuid.UUID(int=7),
    range(1, 9, 2), deque([1, d.date(2020, 1, 1)], 3), array.array("d", [1.5]), slice(1, None, (2,))]
for value in values:
    same = f(value)
    assert same == value and type(same) is type(value) and same.__reduce__ is not None, value
assert f(values) == values and f({d.date(2020, 1, 1): {decimal.Decimal(2)}}) == {d.date(2020, 1, 1): {decimal.Decimal(2)}}
assert half(3) == decimal.Decimal("1.5") and str(f(decimal.Decimal("1.50"))) == "1.50"`,
    ],
    source:
      "import decimal\nimport datetime\ndef f(x):\n    assert not isinstance(x, str)\n    return x\ndef half(x): return decimal.Decimal(x) / 2",
  },
  {
    name: "a slice of an object",
    tests: ["assert Row([1, 2, 3])[1:] == [2, 3] and Row([1, 2, 3])[::2] == [1, 3]"],
    source:
      "class Row:\n    def __init__(self, x): self.x = x\n    def __getitem__(self, i): return self.x[i]",
  },
  {
    name: "a file that only fails by saying so",
    tests: pytest("def test_a():\n    if f(1) != 1: pytest.fail('wrong')"),
    source: "def f(x): return x",
  },
];
