/** What is Python and what is not, judged before anything runs. */
import type { Row } from "./row.ts";

export interface SyntaxRow {
  name: string;
  source: string;
  detail: RegExp;
}

/** Sources that are no programs. Each is judged once, however many inputs it has. */
export const rejected: SyntaxRow[] = [
  { name: "an open bracket", source: "x = 1\nprint(", detail: /^line 2: / },
  { name: "an invalid expression", source: "x = = 1", detail: /^line 1: invalid syntax/ },
  { name: "bad indentation", source: "if 1:\nprint(1)", detail: /^line 2: expected an indented block/ },
  {
    name: "tabs mixed with blanks",
    source: "if 1:\n        a = 1\n\tb = 2",
    detail: /^line 3: inconsistent use of tabs/,
  },
  {
    name: "a dedent to nowhere",
    source: "if 1:\n    if 1:\n        a\n      b",
    detail: /^line 4: unindent/,
  },
  { name: "a null byte", source: "print(1)\0", detail: /null byte/ },
  {
    name: "parentheses in parentheses",
    source: `${"(".repeat(300)}1${")".repeat(300)}`,
    detail: /too many nested parentheses/,
  },
  { name: "return at the top", source: "print(1)\nreturn", detail: /^line 2: 'return' outside function/ },
  {
    name: "await at the top",
    source: "import asyncio\nawait asyncio.sleep(0)",
    detail: /^line 2: 'await' outside function/,
  },
  { name: "yield at the top", source: "yield 1", detail: /^line 1: 'yield' outside function/ },
  { name: "break outside a loop", source: "break", detail: /^line 1: 'break' outside loop/ },
  { name: "nonlocal at the top", source: "nonlocal x", detail: /^line 1: nonlocal declaration/ },
  { name: "the same argument twice", source: "def f(a, a): pass", detail: /^line 1: duplicate argument/ },
  { name: "an unknown encoding", source: "# -*- coding: no-such -*-\nprint(1)", detail: /no-such/ },
  { name: "an encoding that is none of text", source: "# coding: hex\nprint(1)", detail: /./ },
  {
    name: "braces from the future",
    source: "from __future__ import braces",
    detail: /^line 1: not a chance/,
  },
  { name: "an unknown future", source: "from __future__ import flying_cars", detail: /flying_cars/ },
  {
    name: "a future that comes late",
    source: "x = 1\nfrom __future__ import annotations",
    detail: /^line 2: from __future__/,
  },
  { name: "a text without an end", source: 'x = """abc', detail: /^line 1: unterminated triple-quoted/ },
  { name: "a character that is none of Python", source: "x = 1 ‒ 2", detail: /^line 1: invalid character/ },
  { name: "Python 2", source: 'print "hello"', detail: /^line 1: Missing parentheses/ },
  { name: "an escape that is none", source: String.raw`x = "\N{no such name}"`, detail: /unicode/ },
  { name: "prose", source: "Here is the program you asked for.", detail: /^line 1: / },
];

/** Sources that look odd and are programs. */
export const accepted: Row[] = [
  { name: "nothing at all", source: "" },
  { name: "only a remark", source: "# nothing" },
  { name: "a byte order mark", source: "\ufeffprint(1)", ends: { stdout: "1\n" } },
  { name: "Windows line ends", source: "if 1:\r\n    print(1)\r\n", ends: { stdout: "1\n" } },
  { name: "no final line end", source: "if 1:\n\tprint(1)", ends: { stdout: "1\n" } },
  { name: "a form feed", source: "\fprint(1)\n\f\nprint(2)", ends: { stdout: "1\n2\n" } },
  {
    name: "a shebang and an encoding",
    source: "#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\nprint('é')",
    ends: { stdout: "é\n" },
  },
  { name: "names beyond ASCII", source: "größe = 3\nprint(größe)", ends: { stdout: "3\n" } },
  {
    name: "annotations from the future",
    source: "from __future__ import annotations\nclass A:\n    x: no_such\nprint(A.__annotations__)",
    ends: { stdout: "{'x': 'no_such'}\n" },
  },
  { name: "a syntax warning", source: "print(1 is 1)", ends: { stdout: "True\n" }, stderr: /SyntaxWarning/ },
  { name: "an invalid escape", source: String.raw`print("\d")`, ends: { stdout: "\\d\n" } },
  { name: "a long line", source: `print(len([${"1, ".repeat(20_000)}]))`, ends: { stdout: "20000\n" } },
  { name: "a long number", source: `print(${"9".repeat(6000)} % 7)`, ends: { stdout: "0\n" } },
  { name: "many lines", source: `${"x = 1\n".repeat(10_000)}print(x)`, ends: { stdout: "1\n" } },
];
