/** Programs with a function `f`, and the verdict that each should get. */

interface CalledProgram {
  readonly name: string;
  readonly source: string;
  /** One JSON value per line. */
  readonly input: string;
  readonly output: string;
  readonly returns?: string;
  readonly verdict: string;
  readonly limits?: object;
}

const long = "7".repeat(6_000);

export const calledPrograms: readonly CalledProgram[] = [
  {
    name: "a function among others, which prints",
    source: "def g(x): return x * 2\ndef f(x, y):\n    print('x' * 1000)\n    return g(x) + y",
    input: "1\n2",
    output: "4",
    verdict: "passed",
  },
  {
    name: "a method, with types that nobody imported",
    source:
      "class Solution:\n    def f(self, xs: List[int], k: Optional[int]) -> Dict[str, int]:\n        c = Counter(xs)\n        heapify(xs)\n        return {'sum': math.floor(sqrt(sum(xs))), 'top': c.most_common(1)[0][0]}",
    input: "[4, 4, 1]\nnull",
    output: '{"sum": 3, "top": 4}',
    verdict: "passed",
  },
  {
    name: "a method that keeps state, and a constructor that must be called",
    source:
      "class Solution:\n    def __init__(self): self.seen = []\n    def f(self, x):\n        self.seen.append(x)\n        return self.seen",
    input: "5",
    output: "[5]",
    verdict: "passed",
  },
  {
    name: "a function beside a class Solution without it",
    source: "class Solution: pass\ndef f(x): return x",
    input: "5",
    output: "5",
    verdict: "passed",
  },
  {
    name: "a main part, which does not run",
    source: "def f(x): return x\nif __name__ == '__main__':\n    print(f(int(input())))",
    input: "5",
    output: "5",
    verdict: "passed",
  },
  {
    name: "a long integer",
    source: "def f(x): return x + 1",
    input: long,
    output: `${long.slice(0, -1)}8`,
    verdict: "passed",
  },
  {
    name: "builtins are not those of other modules",
    source: "def f(x): return [pow(x, 2, 5), sum(x for x in range(3)), max(1, 2)]",
    input: "3",
    output: "[4, 3, 2]",
    verdict: "passed",
  },
  {
    name: "data classes, recursion, threads and processes",
    source:
      "import sys, threading, multiprocessing\nfrom dataclasses import dataclass\nsys.setrecursionlimit(20000)\n@dataclass\nclass P:\n    x: int\ndef deep(n): return n if n == 0 else deep(n - 1)\ndef f(x):\n    out = []\n    t = threading.Thread(target=lambda: out.append(P(x).x)); t.start(); t.join()\n    with multiprocessing.Pool(1) as pool: got = pool.map(abs, [-1])\n    return out + got + [deep(5000)]",
    input: "3",
    output: "[3, 1, 0]",
    verdict: "passed",
  },
  {
    name: "a thread that goes on for ever, after the answer",
    source:
      "import threading, time\ndef f(x):\n    threading.Thread(target=lambda: time.sleep(1000)).start()\n    return x",
    input: "3",
    output: "3",
    verdict: "passed",
  },
  {
    name: "an argument changed in place",
    source: "def f(k, xs): xs.sort(); xs *= k",
    input: "2\n[2, 1]",
    output: "[1, 2, 1, 2]",
    returns: "argument 1",
    verdict: "passed",
  },
  {
    name: "an argument that is replaced, and not changed",
    source: "def f(k, xs): xs = sorted(xs) * k; return xs",
    input: "2\n[2, 1]",
    output: "[1, 2, 1, 2]",
    returns: "argument 1",
    verdict: "wrong_output",
  },
  { name: "nothing returned", source: "def f(x): x", input: "1", output: "1", verdict: "wrong_output" },
  {
    name: "no such function",
    source: "def g(x): return x",
    input: "1",
    output: "1",
    verdict: "runtime_error",
  },
  { name: "no function at all", source: "f = 3", input: "1", output: "1", verdict: "runtime_error" },
  { name: "other arguments", source: "def f(): return 1", input: "1", output: "1", verdict: "runtime_error" },
  {
    name: "an exception",
    source: "def f(x): return 1 / 0",
    input: "1",
    output: "1",
    verdict: "runtime_error",
  },
  {
    name: "an exit that says failure",
    source: "import sys\ndef f(x): sys.exit(3)",
    input: "1",
    output: "1",
    verdict: "runtime_error",
  },
  {
    name: "a program that fails before",
    source: "1 / 0\ndef f(x): return x",
    input: "1",
    output: "1",
    verdict: "runtime_error",
  },
  {
    name: "a sleep without end",
    source: "import time\ndef f(x): time.sleep(1000)",
    input: "1",
    output: "1",
    verdict: "time_limit",
  },
  {
    name: "too much memory",
    source: "def f(x): return len(bytearray(b'x' * (100 << 20)))",
    input: "1",
    output: "1",
    verdict: "memory_limit",
    limits: { memory_mib: 64 },
  },
  {
    name: "too much returned",
    source: "def f(x): return 'x' * 100_000",
    input: "1",
    output: "1",
    verdict: "output_limit",
  },
  {
    name: "too much printed",
    source: "def f(x):\n    print('x' * 100_000)\n    return 1",
    input: "1",
    output: "1",
    verdict: "output_limit",
  },
  {
    name: "a crash",
    source: "import ctypes\ndef f(x): ctypes.string_at(0)",
    input: "1",
    output: "1",
    verdict: "signaled",
  },
];
