/** Sources that attack the compiler. None of them runs a line. */
import type { Attack } from "../attack.ts";

function nested(depth: number, indent = ""): string {
  const levels = Array.from({ length: depth }, (_, level) => indent + " ".repeat(level));
  return `${levels.map((blank) => `${blank}try:x\n${blank}finally:\n`).join("")}${indent}${" ".repeat(depth)}x\n`;
}

function refused(name: string, source: string, limits: Attack["limits"] = {}): Attack {
  return { name, source, bare: true, ends: "syntax_error", limits };
}

/** The body of a last `finally` is compiled twice for each one around it: 784 bytes become millions of instructions. */
export const sources: Attack[] = [
  refused("a source that takes gigabytes to compile", nested(20)),
  refused(
    "a source that takes minutes to compile",
    Array.from({ length: 60 }, (_, n) => `def f${n}():\n${nested(16, " ")}`).join(""),
    { memory_mib: 512 },
  ),
  refused("a sum of thousands", Array.from({ length: 20_000 }, () => "1").join("+")),
  refused("thousands of signs", `${"-".repeat(50_000)}1`),
  refused("thousands of brackets", `${"(".repeat(30_000)}${")".repeat(30_000)}`),
  refused("thousands of attributes", `a${".b".repeat(30_000)}`),
  refused("thousands of calls", `f${"()".repeat(30_000)}`),
  refused("thousands of functions in functions", `${"lambda:".repeat(9000)}0`),
  refused("thousands of else-ifs", `if 0: 0\n${"elif 0: 0\n".repeat(6000)}`),
  refused("nesting in a text that is a program", `f"${"{(".repeat(5000)}"`),
  refused("a null byte", "print(1)\0print(2)"),
  refused("a codec that is none of text", "# coding: zlib\nprint(1)"),
  refused("a codec that turns text round", "# coding: rot13\ncevag(1)\n)("),
  {
    name: "constants that would fold into gigabytes",
    source: 'x = lambda: ("a" * 9**9, 1 << 10**9, (0,) * 10**9, 9**9**9)\nprint("blocked")',
    bare: true,
  },
];
