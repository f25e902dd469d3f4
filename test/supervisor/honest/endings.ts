/** How programs end: by code, by exception, by signal. */
import { expect } from "vitest";
import type { Row } from "./row.ts";

function exits(name: string, source: string, exitCode: number, stderr?: RegExp): Row {
  const ends = { exit_code: exitCode, stdout: "said\n" };
  return { name, source: `import os, sys\nprint("said")\n${source}\n`, ends, ...(stderr && { stderr }) };
}

const RUNS_NOTHING = { stdout: "" };

export const endings: Row[] = [
  exits("its last line", "pass", 0, /^$/),
  exits("sys.exit()", "sys.exit()", 0, /^$/),
  exits("sys.exit(None)", "sys.exit(None)", 0),
  exits("sys.exit(0)", "sys.exit(0)", 0),
  exits("sys.exit(3)", "sys.exit(3)", 3),
  exits("sys.exit(256), which wraps to 0", "sys.exit(256)", 0),
  exits("sys.exit(257), which wraps to 1", "sys.exit(257)", 1),
  exits("sys.exit(-1), which wraps to 255", "sys.exit(-1)", 255),
  exits("sys.exit(True)", "sys.exit(True)", 1),
  exits("sys.exit with a text", "sys.exit('no way')", 1, /^no way\n$/),
  exits("sys.exit with a number that is no integer", "sys.exit(2.5)", 1, /^2\.5\n$/),
  exits("raise SystemExit(1)", "raise SystemExit(1)", 1, /^$/),
  exits("exit()", "exit()", 0, /^$/),
  exits("quit()", "quit()", 0, /^$/),
  exits("exit(4)", "exit(4)", 4),
  exits("quit('bad')", "quit('bad')", 1, /^bad\n$/),
  exits("os._exit(7) after a flush", "sys.stdout.flush(); os._exit(7)", 7),
  exits("an exception", "1 / 0", 1, /ZeroDivisionError: division by zero\n$/),
  exits("an exception of the widest kind", "class Odd(BaseException): pass\nraise Odd('x')", 1, /Odd: x\n$/),
  exits(
    "an exception that can't be printed",
    "class Odd(Exception):\n    def __str__(self): raise ValueError\nraise Odd",
    1,
    /Odd/,
  ),
  exits("an exception group or its like", "raise ValueError('é😀\\n\\0')", 1, /ValueError: é😀/),
  exits(
    "an exception in a thread, which isn't the program's",
    "import threading\nthreading.Thread(target=lambda: 1 / 0).start()",
    0,
    /ZeroDivisionError/,
  ),
  exits(
    "sys.exit in a thread, which ends the thread",
    "import threading\nthreading.Thread(target=sys.exit, args=(5,)).start()",
    0,
  ),
  exits(
    "an exception in an exit function",
    "import atexit\natexit.register(lambda: 1 / 0)",
    0,
    /ZeroDivisionError/,
  ),
  exits(
    "an exception hook of its own",
    "sys.excepthook = lambda *about: print('hooked', file=sys.stderr)\n1 / 0",
    1,
    /^hooked\n$/,
  ),
  exits("a syntax error at run time", "exec('x =')", 1, /SyntaxError/),
  exits(
    "a syntax error that it raises itself",
    "raise SyntaxError('line 1: mine')",
    1,
    /SyntaxError: line 1: mine\n$/,
  ),
  exits("an import that fails", "import no_such_module", 1, /ModuleNotFoundError/),
  exits("recursion without end", "def f(): f()\nf()", 1, /RecursionError/),
  {
    name: "a traceback shows the program and nothing around it",
    source: "def f():\n    return {}['missing']\nf()\n",
    ends: { exit_code: 1 },
    stderr:
      /^Traceback \(most recent call last\):\n {2}File ".*main\.py", line 3, in <module>\n(.*\n)*? {2}File ".*main\.py", line 2, in f\n(.*\n)*?KeyError: 'missing'\n$/,
    check: ([line]) => expect(line?.stderr_tail?.match(/File "/g)).toHaveLength(2),
  },
  {
    name: "recursion without end or limit ends only its own case",
    source: `
import sys
sys.setrecursionlimit(10**9)
def plain(n): return plain(n + 1)
def through_c(n): return sorted([n], key=through_c)
{"plain": plain, "through C": through_c}.get(input(), print)("fine")
`,
    inputs: ["fine", "plain", "through C", "fine"],
    ends: null,
    check: (lines) => {
      expect([lines[0]?.stdout, lines[3]?.stdout]).toEqual(["fine\n", "fine\n"]);
      for (const line of lines.slice(1, 3)) {
        expect(["signaled", "memory_limit", "exited"]).toContain(line.status);
        expect(line.exit_code).not.toBe(0);
      }
    },
  },
  {
    name: "an interrupt that nobody catches",
    source: "print('said', flush=True)\nraise KeyboardInterrupt",
    ends: null,
    stderr: /KeyboardInterrupt\n$/,
    check: ([line]) => {
      expect(line).toMatchObject({ status: "exited", stdout: "said\n" });
      expect(line?.exit_code).not.toBe(0);
    },
  },
  {
    name: "an abort is a signal",
    source: "import os\nos.abort()",
    ends: { status: "signaled", ...RUNS_NOTHING },
    check: ([line]) => expect(["SIGABRT", "SIGSEGV"]).toContain(line?.signal),
  },
  {
    name: "a null pointer is a signal",
    source: 'import ctypes\nprint("first", flush=True)\nctypes.string_at(0)',
    ends: { status: "signaled", signal: "SIGSEGV", stdout: "first\n" },
  },
];
