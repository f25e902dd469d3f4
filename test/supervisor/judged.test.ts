/** Programs whose function is called, by the supervisor or by tests in a process beside them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { makeProgram, type Supervisor, startSupervisor } from "./harness.ts";
import { childrenOf } from "./host-view.ts";
import { modes } from "./launch.ts";
import { type Limits, type Line, openChunk, type Program } from "./wire.ts";

const test = (statement: string) => JSON.stringify({ kind: "asserts", before: "", setup: "", statement });

function tested(id: string, source: string, statements: string[], limits: Partial<Limits> = {}): Program {
  return { ...makeProgram(id, source, statements.map(test), limits), mode: "tests" };
}

function describeCase(input: number): string {
  return JSON.stringify({ input: `${input}`, expected: `${input}` });
}

function endsOf(lines: Line[]): Line[] {
  return lines.filter(({ type }) => type === "ended").sort((a, b) => (a.case ?? 0) - (b.case ?? 0));
}

/** What a process can see of others: processes, descriptors, files, sockets, who sent a signal. */
const look = `
import os, socket
def f(do=None):
    own = socket.socket(socket.AF_UNIX)
    return {
        "processes": [name for name in os.listdir("/proc") if name.isdigit()],
        "files": sorted(os.listdir("/tmp") + os.listdir("/dev/shm")),
        "descriptors": sorted(os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")),
    }
def listen():
    global kept
    kept = socket.socket(socket.AF_UNIX)
    kept.bind("\\0program")
    kept.listen()
def kill():
    for pid in range(2, 99):
        try: os.kill(pid, 9); return pid
        except OSError: pass
`;

describe.each(modes)("as %s", (mode) => {
  let supervisor: Supervisor;
  beforeAll(async () => {
    supervisor = await startSupervisor({ mode });
  }, 60_000);
  afterAll(() => supervisor.close());

  it("a call's result is beside what the program prints", async () => {
    const program = makeProgram("p", "def f(x):\n    print('hello')\n    return (x, None)", [
      '{"function":"f","arguments":[1]}',
    ]);
    const { lines } = await supervisor.execute(supervisor.chunk([{ ...program, mode: "call" }]));
    expect(endsOf(lines)).toMatchObject([
      { status: "exited", exit_code: 0, stdout: "hello\n", result: '{"value":{"tuple":[1,null]}}\n' },
    ]);
  });

  it("the end of an iteration that a call raises ends no loop of the tests", async () => {
    const loops = [
      "assert all(map(f, [1]))",
      "assert [*zip(map(f, [1]))] == []",
      "for x in map(f, [1]): assert x",
    ];
    const ended = "def f(x): raise StopIteration";
    const own =
      "def f(x):\n    yield x\nclass g:\n    def __init__(self, x): self.x = x\n    def __iter__(self): return self\n    def __next__(self): raise StopIteration";
    const expecting = (name: string) => `try:\n    f(1)\nexcept ${name}:\n    pass\nelse:\n    assert False`;
    const named = ["StopIteration", "__import__('builtins').StopIteration"].map(expecting);
    const others = ["RuntimeError", "ValueError"].map(expecting);
    const { lines } = await supervisor.execute(
      supervisor.chunk([
        tested("wrong", ended, loops),
        tested("expected", ended, named),
        tested("other", ended, others),
        tested("iterators", own, ["assert list(f(3)) == [3]", "assert list(g(3)) == []"]),
      ]),
    );
    const outcomes = (id: string) =>
      endsOf(lines).flatMap(({ program, result }) => (program === id ? [result] : []));
    expect(outcomes("wrong")).toEqual(["raised", "raised", "raised"]);
    expect(outcomes("expected")).toEqual(["passed", "passed"]);
    expect(outcomes("other")).toEqual(["raised", "raised"]);
    expect(outcomes("iterators")).toEqual(["passed", "passed"]);
  }, 30_000);

  it("names of Python's library that tests use without importing them are the tests' own", async () => {
    const bent = [
      "class Anything:\n    def __init__(self, *_, **__): pass\n    def __eq__(self, other): return True",
      "Counter = lambda *_: 0\nisclose = all_close = lambda *_, **__: True",
      "sqrt = lambda x: 0\nfsum = lambda xs: 2.5\nOrderedDict = deque = lambda *_: 0\nclass pathlib: Path = lambda *_: 0",
      "def f(x): return 0",
    ].join("\n");
    const right =
      "def f(x): return [1, 2, 2]\ndef g(x): return 2.5\nclass Solution:\n    def g(self, x): return 2.5";
    const compared = [
      "assert Counter(f(3)) == Counter([1, 2, 2])",
      "assert f(3) == list(deque([1, 2, 2])) or f(3) == deque([1, 2, 2])",
      "assert isclose(g(3), 2.5)",
      "assert isclose(g(3), sqrt(6.25))",
      "s = Solution()\nassert isclose(s.g(3), 2.5) and fsum([s.g(3)]) == 2.5",
      "s = Solution()\nassert fsum([s.g(3)]) == 2.5",
      "assert fsum([Solution().g(3)]) == 2.5",
      "from solution import f\nassert Counter(f(3)) == Counter([1, 2, 2])",
      "import solution\nassert Counter(solution.f(3)) == Counter([1, 2, 2])",
      "assert list(pathlib.Path('1/2').parts) == [str(x) for x in f(3)][:2]",
    ];
    const asked = [
      "assert product(2, 3) == 6",
      "assert count([1, 1], 1) == 2",
      "assert merge(Node(1), Node(2)) == 3",
      "root = Node(1)\nroot.next = Node(2)\nassert merge(root, root.next) == 3",
      "assert isclose(sqrt(4), 3.0)",
      "c = Counter()\nc.add()\nassert c.total == 1",
      "assert sum(10, 15) == 6",
    ];
    const namesakes = [
      "def product(a, b): return a * b\ndef count(xs, x): return xs.count(x)\ndef sqrt(x): return 3.0",
      "class Node:\n    def __init__(self, n): self.n = n\ndef merge(a, b): return a.n + b.n",
      "class Counter:\n    total = 0\n    def add(self): self.total += 1\ndef sum(a, b): return 6",
    ].join("\n");
    const { lines } = await supervisor.execute(
      supervisor.chunk([
        tested(
          "bent",
          `${bent}\ndef g(x): return 0\nclass Solution:\n    def g(self, x): return 0\n`,
          compared,
        ),
        tested("right", right, compared),
        tested("namesakes", namesakes, asked),
      ]),
    );
    const outcomes = (id: string) =>
      endsOf(lines).flatMap(({ program, result }) => (program === id ? [result] : []));
    expect(outcomes("bent")).toEqual(compared.map(() => "failed"));
    expect(outcomes("right")).toEqual(compared.map(() => "passed"));
    expect(outcomes("namesakes")).toEqual(asked.map(() => "passed"));
  }, 30_000);

  it("the program's function may be named solution, like what tests import", async () => {
    const statements = [
      "assert solution(2) == 4",
      "assert isclose(solution(x=2), 4)",
      "from solution import solution\nassert solution(2) == 4",
      "import solution\nassert solution.solution(2) == 4",
    ];
    const { lines } = await supervisor.execute(
      supervisor.chunk([
        tested("right", "def solution(x): return x * 2", statements),
        tested("wrong", "def solution(x): return 5\ndef isclose(*_): return True", statements),
        tested("missing", "def other(x): return x * 2", statements),
      ]),
    );
    const outcomes = (id: string) =>
      endsOf(lines).flatMap(({ program, result }) => (program === id ? [result] : []));
    expect(outcomes("right")).toEqual(statements.map(() => "passed"));
    expect(outcomes("wrong")).toEqual(statements.map(() => "failed"));
    expect(outcomes("missing")).toEqual(statements.map(() => "raised"));
  }, 30_000);

  it("no program makes a test unusable by what it has or returns", async () => {
    const statements = [
      "assert f(3)[:2] == [1, 2]",
      "assert f(3)[::-1] == [3, 2, 1]",
      "assert N == 4",
      "assert N + 1 == 5",
      "assert N < 5",
      "assert N in [3, 4]",
      "assert T.startswith('a')",
    ];
    const right = "def f(x): return [1, 2, 3]\nN = 4\nT = 'ab'";
    const own = right.replace("[1, 2, 3]", "type('L', (list,), {})([1, 2, 3])");
    const wrong = "def f(x): return type('L', (list,), {})([5, 6])\nN = T = object()";
    const { lines } = await supervisor.execute(
      supervisor.chunk([
        tested("right", right, statements),
        tested("own", own, statements),
        tested("wrong", wrong, statements),
        tested("nothing", right, ["assert f != 3", "assert True", "assert False"]),
      ]),
    );
    const outcomes = (id: string) =>
      endsOf(lines).flatMap(({ program, result }) => (program === id ? [result] : []));
    expect(outcomes("right")).toEqual(statements.map(() => "passed"));
    expect(outcomes("own")).toEqual(statements.map(() => "passed"));
    expect(outcomes("wrong")).toEqual(statements.map(() => "failed"));
    const ofNothing = endsOf(lines).filter(({ program }) => program === "nothing");
    expect(ofNothing.map(({ status }) => status)).toEqual(Array(3).fill("invalid_test"));
  }, 30_000);

  it("a call costs what the same work on standard input costs", async () => {
    const work = "def f(xs): return sorted(x * 7919 % 10007 for x in xs)\n";
    const values = JSON.stringify(Array.from({ length: 2000 }, (_, n) => n));
    const main = `import json\n${work}print(json.dumps(f(json.loads(input()))))`;
    const calls = Array<string>(20).fill(`{"function":"f","arguments":[${values}]}`);
    const { lines } = await supervisor.execute(
      supervisor.chunk([
        makeProgram("main", main, Array<string>(20).fill(values)),
        { ...makeProgram("call", work, calls), mode: "call" },
      ]),
    );
    const cpuMs = (id: string) =>
      endsOf(lines).reduce((sum, line) => sum + (line.program === id ? (line.cpu_ms ?? 0) : 0), 0);
    expect(endsOf(lines).map(({ status }) => status)).toEqual(Array(40).fill("exited"));
    expect(cpuMs("call") / cpuMs("main"), "it is 1.0 to 1.1 on a quiet machine").toBeLessThan(1.5);
  });

  it("tests and program see nothing of each other", async () => {
    const seen = "open('/tmp/mark', 'w').close()\nseen = f()\n";
    const program = tested("p", look, [
      `${seen}assert seen["processes"] == ["1"], seen`,
      `${seen}assert seen["files"] == ["main.py"], seen`,
      `${seen}assert set(seen["descriptors"]) <= {"pipe", "socket", "/memfd", "/proc/1/fd"}, seen`,
      "assert kill() is None",
      "assert listen() is None\nimport socket\ntry: socket.socket(socket.AF_UNIX)\nexcept OSError: pass\nelse: assert False",
      "import os\nassert f()['processes'] == [p for p in os.listdir('/proc') if p.isdigit()]",
    ]);
    const { lines } = await supervisor.execute(supervisor.chunk([program]));
    const found = endsOf(lines).map(({ status, result, stderr_tail }) => [status, result, stderr_tail]);
    expect(found).toEqual(found.map(() => ["exited", "passed", ""]));
    expect(found).toHaveLength(6);
  });

  it("the program's limits hold for both", async () => {
    const sleeper = "import time\ndef f(x): time.sleep(x)\ndef g(x): return len(bytearray(b'x' * (x << 20)))";
    const limits = { time_ms: 300, memory_mib: 64 };
    const program = tested(
      "p",
      sleeper,
      [
        "f(100)",
        "import time\nf(0)\ntime.sleep(100)",
        "g(200)",
        "import time\ng(1)\nx = b'x' * (200 << 20)\ntime.sleep(0.2)",
      ],
      limits,
    );
    const { lines } = await supervisor.execute(supervisor.chunk([program]));
    expect(endsOf(lines).map(({ status }) => status)).toEqual([
      "time_limit",
      "time_limit",
      "memory_limit",
      "memory_limit",
    ]);
  });

  it("a program that is no Python is told once", async () => {
    const { lines } = await supervisor.execute(
      supervisor.chunk([tested("p", "def f(:", ["f()", "f()", "f()"])]),
    );
    expect(lines.filter(({ type }) => type === "syntax_error")).toHaveLength(1);
  });

  it("a checker never runs while a program does", async () => {
    const now = "import time\nbegan = time.monotonic()\ntime.sleep(0.05)\n";
    const checked = (id: string): Program => ({
      ...makeProgram(id, `${now}print(began, time.monotonic())`, [1, 2, 3].map(describeCase), {
        memory_mib: 64,
      }),
      mode: "checked",
      checker: "slow",
    });
    const checkers = { slow: `${now}import sys\nprint(1)\nprint(began, time.monotonic(), file=sys.stderr)` };
    const answers = await Promise.all(
      ["a", "b"].map((id) =>
        supervisor.execute(supervisor.chunk([checked(id), checked(`${id}2`)], { checkers })),
      ),
    );
    const ends = answers.flatMap(({ lines }) => endsOf(lines));
    expect(ends.map(({ status, result }) => [status, result])).toEqual(ends.map(() => ["exited", "right"]));
    expect(ends).toHaveLength(12);
    const spans = (text = "") => text.trim().split(" ").map(Number) as [number, number];
    for (const { stderr_tail } of ends) {
      const [began, ended] = spans(stderr_tail);
      expect(ended - began).toBeGreaterThan(0.04);
      const beside = ends.filter(({ stdout }) => spans(stdout)[0] < ended && spans(stdout)[1] > began);
      expect(beside).toEqual([]);
    }
  });

  it("nothing is left of either when the caller goes away, however early", async () => {
    const slow = ["f(1)", "import time; f(0); time.sleep(100)"];
    for (const wantedEnds of [0, 0, 0, 1]) {
      const program = tested("p", "import time\ndef f(x): time.sleep(100 * x)", ["f(0)", ...slow], {
        time_ms: 60_000,
      });
      const exchange = openChunk(supervisor, supervisor.chunk([program]));
      exchange.answer.catch(() => {});
      await exchange.until(({ type }) => type === "started");
      if (wantedEnds > 0) await exchange.until(({ type }) => type === "ended");
      exchange.abort();
      await supervisor.becomeIdle();
    }
    const after = tested("after", "def f(x): return x", Array(6).fill("assert f(1) == 1"));
    const { lines } = await supervisor.execute(supervisor.chunk([after]));
    expect(endsOf(lines).map(({ result }) => result)).toEqual(Array(6).fill("passed"));
  });

  it("zygotes killed under them cost no test", async () => {
    const slow = tested(
      "p",
      "import time\ndef f(x):\n    time.sleep(0.3)\n    return x",
      Array(6).fill("assert f(1) == 1"),
    );
    for (const wait of [0, 150]) {
      const exchange = openChunk(supervisor, supervisor.chunk([slow]));
      await exchange.until(({ type }) => type === "started");
      await new Promise((resolve) => setTimeout(resolve, wait));
      for (const zygote of childrenOf(supervisor.pid)) process.kill(zygote, "SIGKILL");
      const { lines } = await exchange.answer;
      expect(endsOf(lines).map(({ result }) => result)).toEqual(Array(6).fill("passed"));
    }
  });
});
