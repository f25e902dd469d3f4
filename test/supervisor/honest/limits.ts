/** Limits of time, memory, output and files: just under them, at them, and over them. */
import { expect } from "vitest";
import type { Row } from "./row.ts";

const OVER_TIME = { status: "time_limit" };
const OVER_MEMORY = { status: "memory_limit" };
const SHORT = { time_ms: 400 };

/** A program over `limitMs` is stopped soon after it, not at some multiple. */
function stopsNear(limitMs: number): NonNullable<Row["check"]> {
  return ([line]) => {
    expect(line?.wall_ms).toBeGreaterThanOrEqual(limitMs);
    expect(line?.cpu_ms).toBeLessThan(limitMs + 400);
  };
}

export const limits: Row[] = [
  {
    name: "sleeping just under the limit",
    source: "import time\ntime.sleep(0.35)\nprint(1)",
    limits: SHORT,
    ends: { stdout: "1\n" },
  },
  {
    name: "sleeping over the limit",
    source: "import time\nprint(1, flush=True)\ntime.sleep(30)",
    limits: SHORT,
    ends: { ...OVER_TIME, stdout: "1\n" },
    check: stopsNear(400),
  },
  {
    name: "computing under the limit",
    source: "import time\nwhile time.process_time() < 0.25: pass\nprint(1)",
    limits: SHORT,
    ends: { stdout: "1\n" },
  },
  {
    name: "computing for ever",
    source: "while True: pass",
    limits: SHORT,
    ends: OVER_TIME,
    check: stopsNear(400),
  },
  {
    name: "waiting for ever",
    source: "import threading\nthreading.Lock().acquire()\nthreading.Event().wait()",
    limits: SHORT,
    ends: OVER_TIME,
  },
  {
    name: "waiting for a child that computes for ever",
    source: "import os\nif os.fork() == 0:\n    while True: pass\nos.wait()",
    limits: SHORT,
    ends: OVER_TIME,
  },
  {
    name: "a thread that never ends",
    source: "import threading, time\nthreading.Thread(target=time.sleep, args=(30,)).start()",
    limits: SHORT,
    ends: OVER_TIME,
  },
  {
    name: "an exit function that never ends",
    source: "import atexit\n@atexit.register\ndef f():\n    while True: pass",
    limits: SHORT,
    ends: OVER_TIME,
  },
  {
    name: "a pattern that backtracks for ever",
    source: 'import re\nre.match(r"(a+)+$", "a" * 60 + "b")',
    limits: SHORT,
    ends: OVER_TIME,
  },
  {
    name: "an arithmetic that can't be interrupted",
    source: "x = 3 ** (1 << 25)",
    limits: SHORT,
    ends: OVER_TIME,
  },
  {
    name: "the shortest limit there is",
    source: "while True: pass",
    limits: { time_ms: 10 },
    ends: OVER_TIME,
  },

  {
    name: "memory under the limit",
    source: "data = bytearray(140 << 20)\nprint(len(data))",
    ends: { stdout: "146800640\n" },
    check: ([line]) => expect(line?.peak_rss_kib).toBeGreaterThan(140 << 10),
  },
  {
    name: "memory over the limit, piece by piece",
    source: 'x = []\nwhile True: x.append(b"x" * (1 << 20))',
    ends: OVER_MEMORY,
  },
  { name: "memory over the limit, at once", source: "x = bytearray(4 << 30)", ends: OVER_MEMORY },
  {
    name: "memory over the limit in small objects",
    source: "x = []\nwhile True: x.append([x])",
    ends: OVER_MEMORY,
  },
  {
    name: "memory of a child over the limit",
    source:
      "import os, time\nif os.fork() == 0:\n    x = bytearray(400 << 20); time.sleep(30)\ntime.sleep(1.5)\nprint(1)",
    ends: OVER_MEMORY,
  },
  {
    name: "memory of a child over the limit that the main program outlives",
    source: "import os\nif os.fork() == 0:\n    x = bytearray(400 << 20); os._exit(0)\nos.wait()\nprint(1)",
    ends: OVER_MEMORY,
  },
  {
    name: "memory of many processes over the limit together",
    source:
      "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        x = bytearray(50 << 20); time.sleep(30)\ntime.sleep(1.5)",
    ends: OVER_MEMORY,
  },
  {
    name: "memory that many processes share counts once",
    source:
      "import os, time\nx = bytearray(100 << 20)\nfor _ in range(8):\n    if os.fork() == 0:\n        time.sleep(0.2); os._exit(0)\nfor _ in range(8): os.wait()\nprint(1)",
    ends: { stdout: "1\n" },
  },
  {
    name: "address space that is never touched is free",
    source: "import mmap\nx = mmap.mmap(-1, 1 << 30)\nprint(len(x))",
    ends: { stdout: "1073741824\n" },
  },
  {
    name: "stacks that are never touched are free",
    source:
      "import threading\nthreading.stack_size(256 << 20)\ngo = threading.Event()\nthreads = [threading.Thread(target=go.wait) for _ in range(20)]\nfor t in threads: t.start()\ngo.set()\nprint(1)",
    ends: { stdout: "1\n" },
  },
  {
    name: "a MemoryError that it handles",
    source: "try: x = bytearray(1 << 60)\nexcept MemoryError: print('handled')",
    ends: { stdout: "handled\n" },
  },
  {
    name: "a MemoryError that it handles by leaving",
    source: "try: x = bytearray(1 << 60)\nexcept MemoryError: exit(3)",
    ends: { exit_code: 3 },
  },
  {
    name: "a MemoryError that ends it",
    source: "x = bytearray(1 << 60)",
    ends: OVER_MEMORY,
    stderr: /MemoryError/,
  },
  {
    name: "the word MemoryError is only a word",
    source: "import sys\nprint('MemoryError', file=sys.stderr)\nexit(1)",
    ends: { exit_code: 1 },
    stderr: /^MemoryError\n$/,
  },
  {
    name: "files count as memory",
    source:
      'x = bytearray(10 << 20)\nfor path in ("/tmp/a", "/dev/shm/a"): open(path, "wb").write(bytes(15 << 20))\nimport time\ntime.sleep(1.5)',
    limits: { memory_mib: 32 },
    ends: OVER_MEMORY,
  },

  {
    name: "output at the limit",
    source: 'print("x" * 99)',
    limits: { output_bytes: 100 },
    ends: { stdout: `${"x".repeat(99)}\n` },
  },
  {
    name: "output one byte over the limit",
    source: 'print("x" * 100)',
    limits: { output_bytes: 100 },
    ends: { status: "output_limit", stdout: "x".repeat(100) },
  },
  {
    name: "output over the limit by a child",
    source: 'import os, time\nif os.fork() == 0:\n    os.write(1, b"x" * 101); os._exit(0)\ntime.sleep(1.5)',
    limits: { output_bytes: 100 },
    ends: { status: "output_limit" },
  },
  {
    name: "output over the limit as it ends",
    source: 'import sys\nsys.stdout.write("x" * 101)',
    limits: { output_bytes: 100 },
    ends: { status: "output_limit" },
  },
  {
    name: "output of the greatest size",
    source: 'print("x" * 1048575)',
    limits: { output_bytes: 1_048_576 },
    ends: { stdout: `${"x".repeat(1_048_575)}\n` },
  },
  { name: "output without end", source: 'while True: print("x" * 1000)', ends: { status: "output_limit" } },
  {
    name: "a cut through a character is not the program's doing",
    source: 'print("€" * 100)',
    limits: { output_bytes: 100 },
    ends: { status: "output_limit" },
  },

  {
    name: "files to 16 MiB and no further, in both places",
    source: `
import errno
for folder in ("/tmp", "/dev/shm"):
    written = 0
    try:
        for n in range(16):
            with open(f"{folder}/{n}", "wb", buffering=0) as file:
                for _ in range(64): written += file.write(bytes(1 << 16))
    except OSError as error: print(errno.errorcode[error.errno], 15 << 20 < written <= 16 << 20)
`,
    ends: { stdout: "ENOSPC True\nENOSPC True\n" },
  },
  {
    name: "a stack that it asks for, for deep recursion",
    source: `
import resource, sys, threading
resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
sys.setrecursionlimit(10**6)
threading.stack_size(2**26)
def depth(n): return n if n == 0 else 1 + depth(n - 1)
thread = threading.Thread(target=lambda: print(depth(50_000)))
thread.start(); thread.join()
`,
    limits: { memory_mib: 256 },
    ends: { stdout: "50000\n" },
  },
  {
    name: "a stack that it asks for, up to a number",
    source: `
import resource, sys
resource.setrlimit(resource.RLIMIT_STACK, (2**28, -1))
print(resource.getrlimit(resource.RLIMIT_STACK)[0] == 2**28)
`,
    ends: { stdout: "True\n" },
  },
];
