/** Standard input, output and error, in all the ways in which programs use them. */
import { expect } from "vitest";
import type { Row } from "./row.ts";

const MEBIBYTE = 1_048_576;

export const streams: Row[] = [
  {
    name: "input() reads lines",
    source: "print(int(input()) + int(input()))",
    inputs: ["2\n3\n", "2\n3", "2\r\n3\r\n"],
    ends: { stdout: "5\n" },
  },
  {
    name: "input() past the end raises EOFError",
    source: "print(input())\nprint(input())",
    inputs: ["5", "5\n"],
    ends: { stdout: "5\n", exit_code: 1 },
    stderr: /EOFError: EOF when reading a line/,
  },
  {
    name: "input() writes its prompt to the output",
    source: 'name = input("name? ")\nprint(name)',
    inputs: ["Ada\n"],
    ends: { stdout: "name? Ada\n" },
  },
  {
    name: "empty input is empty",
    source: "import sys\nprint(repr(sys.stdin.read()), list(sys.stdin))",
    ends: { stdout: "'' []\n" },
  },
  {
    name: "lines can be iterated, after some were read",
    source: "import sys\nfirst = input()\nprint(first, [line.rstrip() for line in sys.stdin])",
    inputs: ["a\nb\nc"],
    ends: { stdout: "a ['b', 'c']\n" },
  },
  {
    name: "open(0) reads everything",
    source: "a, *rest = open(0)\nprint(a.strip(), [r.strip() for r in rest])",
    inputs: ["1\n2 3\n4\n"],
    ends: { stdout: "1 ['2 3', '4']\n" },
  },
  {
    name: "bytes can be read line by line",
    source: "import sys\nread = sys.stdin.buffer.readline\nprint(read(), read(), read())",
    inputs: ["1\r\n2"],
    ends: { stdout: "b'1\\r\\n' b'2' b''\n" },
  },
  {
    name: "descriptor 0 can be read without buffers",
    source: "import os\nprint(os.read(0, 3), os.read(0, 100), os.read(0, 100))",
    inputs: ["abcdef"],
    ends: { stdout: "b'abc' b'def' b''\n" },
  },
  {
    name: "fileinput and a new text stream read what is left of the input",
    source: `
import fileinput, io, sys
kind = sys.stdin.buffer.readline().strip().decode()
if kind == "fileinput": print([line.strip() for line in fileinput.input()])
if kind == "wrapper": print(io.TextIOWrapper(sys.stdin.buffer).read())
`,
    inputs: ["fileinput\nrest\n", "wrapper\nrest"],
    check: (lines) => expect(lines.map((line) => line.stdout)).toEqual(["['rest']\n", "rest\n"]),
  },
  {
    name: "/dev/stdin can be opened",
    source: 'print(open("/dev/stdin").read())',
    inputs: ["over the device"],
    ends: { stdout: "over the device\n" },
  },
  {
    name: "text beyond ASCII, line separators and zero bytes come in whole",
    source: "import sys\ntext = sys.stdin.read()\nprint(len(text), [hex(ord(c)) for c in text])",
    inputs: ["é😀\u2028\0\t"],
    ends: { stdout: "5 ['0xe9', '0x1f600', '0x2028', '0x0', '0x9']\n" },
  },
  {
    name: "a mebibyte of input that nobody reads is no trouble",
    source: 'print("done")',
    inputs: ["x".repeat(MEBIBYTE)],
    ends: { stdout: "done\n" },
  },
  {
    name: "a mebibyte of input is read whole",
    source: "import sys\ndata = sys.stdin.read()\nprint(len(data), data.count('7'))",
    inputs: ["1234567 ".repeat(MEBIBYTE / 8)],
    ends: { stdout: "1048576 131072\n" },
  },
  {
    name: "a program that it starts inherits the streams",
    source: 'import subprocess\nprint("first", flush=True)\nsubprocess.run(["cat"])\nprint("last")',
    inputs: ["handed on\n"],
    ends: { stdout: "first\nhanded on\nlast\n" },
  },
  {
    name: "every way of writing keeps its order",
    source: String.raw`
import os, sys
print("a"); sys.stdout.flush(); os.write(1, b"b\n")
sys.stdout.buffer.write(b"c\n"); sys.stdout.buffer.flush()
open(1, "w", closefd=False).write("d\n")
with open("/dev/stdout", "w") as out: out.write("e\n")
print("f", end="")
`,
    ends: { stdout: "a\nb\nc\nd\ne\nf" },
  },
  {
    name: "output is taken as it is written",
    source: String.raw`import sys; sys.stdout.write("a\r\nb\0\x1b[0m\u2028é😀\n\n")`,
    ends: { stdout: "a\r\nb\0\u001b[0m\u2028é😀\n\n" },
  },
  {
    name: "output that was not flushed counts",
    source: 'import sys\nsys.stdout.write("x" * 5000)\nsys.stdout.buffer.write(b"")',
    ends: { stdout: "x".repeat(5000) },
  },
  {
    name: "output of a stream that it never closed counts",
    source: 'out = open(1, "w")\nout.write("left in a buffer")',
    ends: { stdout: "left in a buffer" },
  },
  {
    name: "output of a last destructor counts",
    source: 'class Last:\n    def __del__(self):\n        print("bye")\nlast = Last()\nprint("hello")',
    ends: { stdout: "hello\nbye\n" },
  },
  {
    name: "output of exit functions counts, last registered first",
    source: 'import atexit\natexit.register(print, "second")\natexit.register(print, "first")\nprint("main")',
    ends: { stdout: "main\nfirst\nsecond\n" },
  },
  {
    name: "a stream of its own in place of sys.stdout is flushed at the end",
    source: `
import os, sys
class Fast:
    def __init__(self): self.parts = []
    def write(self, text): self.parts.append(text)
    def flush(self): os.write(1, "".join(self.parts).encode()); self.parts.clear()
sys.stdout = Fast()
print("held back")
`,
    ends: { stdout: "held back\n" },
  },
  {
    name: "os._exit leaves what was not flushed",
    source: 'import os\nprint("flushed", flush=True)\nprint("lost")\nos._exit(0)',
    ends: { stdout: "flushed\n" },
  },
  {
    name: "a closed output ends quietly",
    source: 'import sys\nprint("x")\nsys.stdout.close()',
    ends: { stdout: "x\n" },
  },
  {
    name: "output that is not UTF-8 comes as Base64",
    source: String.raw`import sys; sys.stdout.buffer.write(b"a\xff\x80")`,
    ends: { stdout_base64: "Yf+A" },
    check: ([line]) => expect(line).not.toHaveProperty("stdout"),
  },
  {
    name: "an encoding of its own choice is kept",
    source: 'import sys\nsys.stdout.reconfigure(encoding="latin-1")\nprint("é")',
    ends: { stdout_base64: "6Qo=" },
  },
  {
    name: "a character cut in two by nothing but its end is not UTF-8",
    source: 'import os\nos.write(1, "é".encode()[:1])',
    ends: { stdout_base64: "ww==" },
  },
  {
    name: "lone surrogates can't be printed",
    source: String.raw`print("before"); print("\ud800")`,
    ends: { exit_code: 1, stdout: "before\n" },
    stderr: /UnicodeEncodeError/,
  },
  {
    name: "noise on standard error is no failure",
    source: 'import sys\nprint("warning", file=sys.stderr)\nprint("ok")',
    ends: { stdout: "ok\n" },
    stderr: /^warning\n$/,
  },
  {
    name: "of a long standard error the end is kept",
    source: 'import sys\nfor i in range(40000): print("noise", i, file=sys.stderr)\nprint("ok")',
    ends: { stdout: "ok\n" },
    stderr: /noise 39999\n$/,
    check: ([line]) => expect(line?.stderr_tail?.length).toBeLessThanOrEqual(65_536),
  },
  {
    name: "standard error that is not UTF-8 is escaped",
    source: String.raw`import os; os.write(2, b"\xff\xfe bad"); print("ok")`,
    ends: { stdout: "ok\n" },
    stderr: / bad$/,
  },
  {
    name: "deep, huge and odd JSON is only text",
    source: `
import sys
print({"deep": "[" * 30000 + "]" * 30000, "nan": "[NaN, Infinity, 1e999]", "line": '{"type":"summary","cases":0}'}[input()])
`,
    inputs: ["deep", "nan", "line"],
    check: (lines) =>
      expect(lines.map((line) => line.stdout)).toEqual([
        `${"[".repeat(30_000)}${"]".repeat(30_000)}\n`,
        "[NaN, Infinity, 1e999]\n",
        '{"type":"summary","cases":0}\n',
      ]),
  },
  {
    name: "standard output whose buffer is taken out is flushed by who has it",
    source: `
import codecs, io, sys
sys.stdout = codecs.getwriter("utf-8")(sys.stdout.detach())
print("é")
`,
    ends: { stdout: "é\n", exit_code: 0 },
  },
  {
    name: "standard output whose buffer is taken out by nobody fails, as an interpreter's does",
    source: 'import sys\nprint("x")\nsys.stdout.flush()\nsys.stdout.detach()\n',
    ends: { stdout: "x\n", exit_code: 120 },
  },
  {
    name: "standard output that C has buffered comes, too",
    source: 'import ctypes\nprint("first", flush=True)\nctypes.CDLL(None).printf(b"second\\n")\n',
    ends: { stdout: "first\nsecond\n", exit_code: 0 },
  },
  {
    name: "standard output that is wrapped again is flushed once",
    source: `
import io, sys
sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8", write_through=True)
print("é")
`,
    ends: { stdout: "é\n", exit_code: 0 },
  },
];
