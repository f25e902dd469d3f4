/** Right programs that naive harnesses break. Each has one test case; all must score 1. */

export interface HonestProgram {
  readonly name: string;
  readonly source: string;
  readonly input?: string;
  readonly output: string;
}

const longInteger = `${"9".repeat(5_000)}`;

export const honestPrograms: readonly HonestProgram[] = [
  {
    name: "buffered input",
    source: "import sys\nprint(sum(map(int, sys.stdin)))",
    input: "1\n2\n3\n",
    output: "6",
  },
  {
    name: "raw input read twice",
    source:
      "import sys\na = sys.stdin.buffer.readline()\nb = sys.stdin.buffer.readline()\nprint(int(a) + int(b))",
    input: "40\n2\n",
    output: "42",
  },
  { name: "input by descriptor", source: "print(len(open(0).read()))", input: "four", output: "4" },
  { name: "os.write", source: "import os\nos.write(1, b'[1, 2]')", output: "[1,2]" },
  { name: "bytes", source: "import sys\nsys.stdout.buffer.write(b'7')", output: "7" },
  { name: "exit() after printing", source: "print(2)\nexit()", output: "2" },
  { name: "sys.exit(0) after printing", source: "import sys\nprint(2)\nsys.exit(0)", output: "2" },
  {
    name: "fork",
    source: "import os\npid = os.fork()\nif pid == 0:\n    os._exit(5)\nprint(os.waitpid(pid, 0)[1] >> 8)",
    output: "5",
  },
  {
    name: "multiprocessing",
    source:
      "from multiprocessing import Pool\ndef square(n):\n    return n * n\nif __name__ == '__main__':\n" +
      "    with Pool(3) as pool:\n        print(pool.map(square, [1, 2, 3]))",
    output: "[1, 4, 9]",
  },
  {
    name: "subprocess",
    source:
      "import subprocess, sys\nrun = subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True)\n" +
      "print(int(run.stdout))",
    output: "42",
  },
  {
    name: "threads with big stacks",
    source:
      "import sys, threading\nsys.setrecursionlimit(10**6)\nthreading.stack_size(512 << 20)\n" +
      "def depth(n):\n    return 0 if n == 0 else 1 + depth(n - 1)\n" +
      "thread = threading.Thread(target=lambda: print(depth(50_000)))\nthread.start()\nthread.join()",
    output: "50000",
  },
  {
    name: "deep recursion",
    source:
      "import sys\nsys.setrecursionlimit(10**6)\ndef depth(n):\n    return 0 if n == 0 else 1 + depth(n - 1)\nprint(depth(20_000))",
    output: "20000",
  },
  {
    name: "5,000-digit integers",
    source: "print(int(input()) + 0)",
    input: longInteger,
    output: longInteger,
  },
  { name: "1 MiB of unread input", source: "print('done' and 1)", input: "x".repeat(1_048_576), output: "1" },
  {
    name: "a global statement and a main guard",
    source:
      "count = 0\ndef bump():\n    global count\n    count += 1\nif __name__ == '__main__':\n    bump()\n    print(count)",
    output: "1",
  },
];
