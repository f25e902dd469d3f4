/** What a program finds as it starts. */
import { expect } from "vitest";
import type { Row } from "./row.ts";

const distinctOutputs: Row["check"] = (lines) => {
  expect(new Set(lines.map((line) => line.stdout)).size).toBe(lines.length);
};

const sameOutputs: Row["check"] = (lines) => {
  expect(lines[0]?.stdout?.trim()).toBeTruthy();
  expect(new Set(lines.map((line) => line.stdout)).size).toBe(1);
};

export const surroundings: Row[] = [
  {
    name: "it is the main module of main.py",
    source: `
import os, sys
print(__name__, sys.argv, os.path.basename(__file__))
print(sys.modules["__main__"].__dict__ is globals(), __doc__, __spec__, __package__)
`,
    ends: { stdout: "__main__ ['main.py'] main.py\nTrue None None None\n" },
  },
  {
    name: "a guarded main runs",
    source: 'def main():\n    print("ran")\n\nif __name__ == "__main__":\n    main()\n',
    ends: { stdout: "ran\n" },
  },
  {
    name: "its docstring is its own",
    source: '"""What I do."""\nprint(__doc__)\n',
    ends: { stdout: "What I do.\n" },
  },
  {
    name: "it has descriptors 0 to 2 and no other",
    source: `
import os
def is_open(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
print([fd for fd in range(4096) if is_open(fd)])
`,
    ends: { stdout: "[0, 1, 2]\n" },
  },
  {
    name: "its working directory is private, writable and holds nothing but itself",
    source: `
import os
print(os.getcwd(), set(os.listdir(".")) <= {"main.py"}, os.listdir("/dev/shm"))
with open("data.txt", "w") as file: file.write("kept")
os.makedirs("a/b"); os.rename("data.txt", "a/b/data.txt"); os.symlink("a/b/data.txt", "link")
print(open("link").read(), os.stat("link").st_size)
`,
    inputs: ["", "", ""],
    ends: { stdout: "/tmp True []\nkept 4\n" },
  },
  {
    name: "its environment is the five variables",
    source: `
import os, subprocess
print(sorted(os.environ), os.environ["PYTHONHASHSEED"], "UTF-8" in os.environ["LANG"].upper())
inherited = subprocess.run(["env"], capture_output=True, text=True).stdout.splitlines()
print(sorted(line.split("=")[0] for line in inherited))
print(os.path.isdir(os.environ["HOME"]), os.access(os.path.expanduser("~"), os.W_OK))
`,
    ends: {
      stdout: [
        "['HOME', 'LANG', 'LOGNAME', 'PATH', 'PYTHONHASHSEED'] 0 True",
        "['HOME', 'LANG', 'LOGNAME', 'PATH', 'PYTHONHASHSEED']",
        "True True",
        "",
      ].join("\n"),
    },
  },
  {
    name: "sets of strings have one order in every case",
    source: 'print(list({"spam", "ham", "eggs", "bacon", "toast", "beans"}), hash("spam"))',
    inputs: ["", "", "", ""],
    check: sameOutputs,
  },
  {
    name: "a Python it starts hashes as it does",
    source: `
import subprocess, sys
child = subprocess.run([sys.executable, "-c", "print(hash('spam'))"], capture_output=True, text=True)
print(child.stdout.strip() == str(hash("spam")), child.returncode, child.stderr)
`,
    ends: { stdout: "True 0 \n" },
  },
  {
    name: "random numbers, names and keys differ between cases",
    source: `
import random, secrets, tempfile, uuid
print(random.random(), secrets.token_hex(8), uuid.uuid4(), tempfile.mkdtemp())
`,
    inputs: ["", "", "", "", "", ""],
    check: distinctOutputs,
  },
  {
    name: "each source of randomness differs between cases by itself",
    source: `
import os, random, tempfile
kind = input()
print({"random": random.random, "shuffle": lambda: random.sample(range(10**6), 3),
       "urandom": lambda: os.urandom(8), "name": tempfile.mktemp}[kind]())
`,
    inputs: ["random", "random", "shuffle", "shuffle", "urandom", "urandom", "name", "name"],
    check: distinctOutputs,
  },
  {
    name: "standard streams know what they are: input can be read again, output can't be sought",
    source: `
import sys
first = sys.stdin.read()
sys.stdin.seek(0)
print(sys.stdin.seekable(), sys.stdin.read() == first, [s.seekable() for s in (sys.stdout, sys.stderr)])
print([(s.mode, s.encoding, s.line_buffering) for s in (sys.stdin, sys.stdout, sys.stderr)])
`,
    inputs: ["one\ntwo\n"],
    ends: {
      stdout:
        "True True [False, False]\n[('r', 'utf-8', False), ('w', 'utf-8', False), ('w', 'utf-8', True)]\n",
    },
  },
  {
    name: "the main thread knows itself, and so does that of a fork",
    source: `
import os, threading
def look():
    main = threading.main_thread()
    return main is threading.current_thread(), main.ident == threading.get_ident(), threading.active_count()
print(look(), threading.main_thread().native_id == os.getpid(), flush=True)
child = os.fork()
if child == 0:
    print(look(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
threading.Thread(target=print, args=("thread",)).start()
`,
    ends: { stdout: "(True, True, 1) True\n(True, True, 1)\nthread\n" },
  },
  {
    name: "seeded random numbers are Python's",
    source: "import random\nrandom.seed(42)\nprint(random.randint(1, 10**6), random.Random(7).random())",
    inputs: ["", ""],
    ends: { stdout: "670488 0.32383276483316237\n" },
  },
  {
    name: "integers have no digit limit",
    source: `
import json
digits = "7" * 5000
print(int(digits) % 1000003 == sum(7 * pow(10, k, 1000003) for k in range(5000)) % 1000003)
print(len(str(10**5000)), str(int(digits)) == digits, json.loads(digits) == int(digits), len(f"{10**9999}"))
`,
    ends: { stdout: "True\n5001 True True 10000\n" },
  },
  {
    name: "the standard library is there",
    source: `
import importlib
names = """abc argparse array ast asyncio base64 bisect calendar cmath collections concurrent.futures contextlib copy csv
ctypes dataclasses datetime decimal difflib email enum fileinput fractions functools glob gzip hashlib heapq html http.client
inspect io itertools json logging math mmap multiprocessing numbers operator os pathlib pickle pprint queue random re resource
secrets select shutil signal socket statistics string struct subprocess tempfile textwrap threading time timeit traceback
typing unicodedata unittest urllib.parse uuid xml.etree.ElementTree zipfile zlib""".split()
for name in names: importlib.import_module(name)
print(len(names))
`,
    ends: { stdout: "71\n" },
  },
  {
    name: "modules that it imports are the standard ones, none of the machinery's",
    source: `
import sys
odd = [name for name, module in sys.modules.items()
       if name != "__main__" and "supervisor" in str(getattr(module, "__file__", ""))]
print(odd, [entry for entry in sys.path if "supervisor" in entry])
for name in ("kernel", "program", "sandbox", "zygote", "seccomp"):
    try: __import__(name)
    except ImportError: continue
    print("found", name)
`,
    ends: { stdout: "[] []\n" },
  },
  {
    name: "a module that it writes can be imported, whatever its name",
    source: `
for name in ("helper", "program", "kernel", "server"):
    with open(name + ".py", "w") as file: file.write(f"value = {name!r}")
import helper, program, kernel, server
print(helper.value, program.value, kernel.value, server.value)
`,
    ends: { stdout: "helper program kernel server\n" },
  },
  {
    name: "it can read its own source",
    source: "# a remark\nprint(open(__file__).read().splitlines()[0])",
    ends: { stdout: "# a remark\n" },
  },
  {
    name: "the interpreter's settings are the usual ones",
    source: `
import gc, signal, sys, threading, warnings
print(sys.getrecursionlimit(), gc.isenabled(), sys.gettrace(), sys.exc_info(), __debug__)
print(threading.current_thread() is threading.main_thread(), threading.active_count())
print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, signal.getsignal(signal.SIGPIPE) == signal.SIG_IGN)
print(sys.stdout.encoding.lower(), sys.stdin.isatty(), sys.stdin.fileno(), sys.stdout.fileno(), sys.stderr.fileno())
`,
    ends: {
      stdout: [
        "1000 True None (None, None, None) True",
        "True 1",
        "True set()",
        "True True",
        "utf-8 False 0 1 2",
        "",
      ].join("\n"),
    },
  },
  {
    name: "files open as UTF-8",
    source: 'with open("t", "w") as file: file.write("é😀")\nprint(open("t", "rb").read(), open("t").read())',
    ends: { stdout: "b'\\xc3\\xa9\\xf0\\x9f\\x98\\x80' é😀\n" },
  },
  {
    name: "assertions are on",
    source: "assert 1 == 2, 'checked'",
    ends: { exit_code: 1 },
    stderr: /AssertionError: checked/,
  },
  {
    name: "annotations are evaluated unless it asks otherwise",
    source: "class A:\n    x: int = 1\nprint(A.__annotations__['x'] is int)",
    ends: { stdout: "True\n" },
  },
  {
    name: "exit, quit, copyright and help are there",
    source: "print(callable(exit), callable(quit), callable(help), 'copyright' in dir(__builtins__))",
    ends: { stdout: "True True True True\n" },
  },
  {
    name: "time goes on and is today's",
    source: `
import datetime, time
a = time.perf_counter(); time.sleep(0.02); b = time.perf_counter()
print(0.02 <= b - a < 1, datetime.date.today().year >= 2024, time.process_time() < 1, time.gmtime(0).tm_year)
`,
    ends: { stdout: "True True True 1970\n" },
  },
  {
    name: "it is process 1 and sees no other",
    source: 'import os\nprint(os.getpid(), [name for name in os.listdir("/proc") if name.isdigit()])',
    ends: { stdout: "1 ['1']\n" },
  },
  {
    name: "common devices work",
    source: `
open("/dev/null", "w").write("x")
print(len(open("/dev/urandom", "rb").read(16)), open("/dev/zero", "rb").read(3))
`,
    ends: { stdout: "16 b'\\x00\\x00\\x00'\n" },
  },
  {
    name: "dataclasses, types, enums and pickles of its own classes work",
    source: `
import copy, dataclasses, enum, pickle, typing
@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: "typing.Optional[int]" = None
class Color(enum.Enum):
    RED = 1
class Pair(typing.NamedTuple):
    a: int
    b: str
p = Point(1, 2)
print(pickle.loads(pickle.dumps(p)) == p, pickle.loads(pickle.dumps(Color.RED)) is Color.RED, Pair(1, "b"), copy.deepcopy(p))
print(typing.get_type_hints(Point)["x"], Point.__module__, Point(1, 2) < Point(1, 3))
`,
    ends: { stdout: "True True Pair(a=1, b='b') Point(x=1, y=2)\n<class 'int'> __main__ True\n" },
  },
  {
    name: "global statements, exec and eval act on its own names",
    source: `
total = 0
def add(n):
    global total
    total += n
add(4); exec("total += 1"); exec("def twice(x): return 2 * x", globals())
print(total, eval("twice(total)"), "total" in globals(), [total for _ in range(1)])
`,
    ends: { stdout: "5 10 True [5]\n" },
  },
  {
    name: "its source is found from every directory",
    source: `
import inspect, os, sys
def f(): return 1
os.chdir("/")
print(inspect.getsource(f).strip(), __file__, sys.argv)
`,
    ends: { stdout: "def f(): return 1 /tmp/main.py ['main.py']\n" },
  },
  {
    name: "it has a name",
    source: "import getpass\nprint(getpass.getuser())\n",
    ends: { stdout: "nobody\n" },
  },
];
