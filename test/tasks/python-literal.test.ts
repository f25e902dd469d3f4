import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareJson, readExpectedJson } from "../../functions/grading/json-comparison.ts";
import { writeJsonText } from "../../functions/grading/json-text.ts";
import { readPythonLiteral } from "../../functions/tasks/python-literal.ts";
import { measureCpuUs } from "../grading/cpu-time.ts";

/** What Python says of each text: a JSON text, or `u`. */
function askPython(texts: readonly string[]): string[] {
  const input = texts.map((text) => `${JSON.stringify(text)}\n`).join("");
  const answer = execFileSync("python3", ["-W", "ignore", `${import.meta.dirname}/literal_oracle.py`], {
    input,
    encoding: "utf8",
  });
  return answer.trimEnd().split("\n");
}

/** What the reader says, in the same words. */
function judge(text: string): string {
  const reading = readPythonLiteral(text);
  return reading.kind === "value" ? (writeJsonText(reading.value) ?? "u") : "u";
}

function isSame(one: string, other: string): boolean {
  const expected = one === "u" ? null : readExpectedJson(one);
  return expected?.kind === "ok" ? compareJson(expected.value, other) : one === other;
}

/** What `repr` writes, and what it doesn't. */
const spellings = [
  "{'language': 'python', 'test_cases': [{'fn_name': None, 'input': '1 2\\n', 'output': \"it's\\n\", 'type': 'stdin_stdout'}]}",
  "[]",
  "()",
  "{}",
  "(1,)",
  "(1)",
  "((1))",
  "(1, 2)",
  "[1, 2,]",
  "{'a': 1,}",
  "[(1, [2])]",
  " [ 1 , 2 ]\n",
  "[True, False, None]",
  "'\\x41\\u00e9\\U0001F600\\n\\t\\r\\\\\\'\\\"\\0\\101\\a\\b\\f\\v'",
  "'a\\\nb'",
  '"\'"',
  "'\"'",
  "''",
  "'é日😀'",
  "0",
  "-0",
  "+7",
  "-17",
  "1234567890123456789012345678901234567890",
  "1.0",
  "-0.0",
  "1e5",
  "1.5e-3",
  ".5",
  "5.",
  "1E+2",
  "00",
  "1e400",
];
const refused = [
  "",
  " ",
  "x",
  "None1",
  "Nonex",
  "[",
  "]",
  "[1",
  "[1,,2]",
  "[,]",
  "{1: 2}",
  "{'a'}",
  "{'a': }",
  "{'a' 1}",
  "{'a': 1 'b': 2}",
  "'a",
  "'a\n'",
  "'\\x4'",
  "'\\u12'",
  "'\\U00110000'",
  "b'a'",
  "1j",
  "1+2",
  "f'a'",
  "open('x')",
  "[x for x in y]",
  "lambda: 1",
  "__import__('os')",
  "nan",
  "inf",
  "...",
  "'a'.b",
  "1 2",
  "'\\",
  "{'a': 1}}",
  "@",
  "\0",
];
/** Texts that Python reads and this reader need not: nobody's `repr` writes them. */
const leftOut = [
  "'a' 'b'",
  "'''a'''",
  "r'a'",
  "u'a'",
  "1_000",
  "0x1f",
  "0b1",
  "[1] # c",
  "- 1",
  "-(1)",
  "'\\N{BULLET}'",
  "'\\d'",
  "{1, 2}",
];

describe("a Python literal", () => {
  it("is read as Python reads it", () => {
    const answers = askPython(spellings);
    for (const [index, text] of spellings.entries()) {
      if (text === "00" || text === "1e400") continue;
      expect(
        isSame(answers[index] ?? "", judge(text)),
        `${text}: ${answers[index]}, not ${judge(text)}`,
      ).toBe(true);
      expect(judge(text)).not.toBe("u");
    }
  });

  it("is nothing that Python takes for none", () => {
    expect(askPython(refused)).toEqual(refused.map(() => "u"));
    expect(refused.map((text) => [text, judge(text)])).toEqual(refused.map((text) => [text, "u"]));
  });

  it.each(leftOut.map((text) => [text]))("may be %j for Python, and is refused here", (text) => {
    expect(judge(text)).toBe("u");
  });

  it("is read back from what repr writes of any value", () => {
    const values = fc.sample(fc.json({ maxDepth: 4 }), { numRuns: 1_000, seed: 81 });
    const script = "import json,sys\nfor l in sys.stdin: print(json.dumps(repr(json.loads(l))))";
    const input = values.map((value) => `${value.replaceAll("\n", " ")}\n`).join("");
    const texts = execFileSync("python3", ["-c", script], { input, encoding: "utf8" }).trimEnd().split("\n");
    for (const [index, value] of values.entries()) {
      const expected = readExpectedJson(value);
      if (expected.kind !== "ok") throw new Error(expected.detail);
      const text = JSON.parse(texts[index] ?? "");
      expect(compareJson(expected.value, judge(text)), `${value} as ${text} is ${judge(text)}`).toBe(true);
    }
  });

  it("is never read as another value than Python's, whatever the text", () => {
    const piece = fc.constantFrom(
      ..."[ ] { } ( ) , : ' \" \\ n x41 u00e9 1 - . e None True a 0 +".split(" "),
      " ",
      "\n",
    );
    const texts = fc.sample(
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
      { numRuns: 5_000, seed: 82 },
    );
    const answers = askPython(texts);
    let read = 0;
    for (const [index, text] of texts.entries()) {
      const mine = judge(text);
      if (mine === "u") continue;
      read += 1;
      // Zeros in front of a number are a slip that Python refuses.
      if (/(^|[^.\w])0\d/.test(text)) continue;
      expect(
        isSame(answers[index] ?? "", mine),
        `${JSON.stringify(text)}: ${answers[index]}, not ${mine}`,
      ).toBe(true);
    }
    expect(read, "some are read").toBeGreaterThan(100);
  });

  it.each([
    ["brackets", "[".repeat(1_000_000)],
    ["a list of numbers", `[${"1,".repeat(500_000)}]`],
    ["digits", `[${"1".repeat(1_000_000)}x`],
    ["blanks", `${" ".repeat(1_000_000)}x`],
    ["a text of escapes", `'${"\\x41".repeat(250_000)}'`],
    ["an open text of backslashes", `'${"\\\\".repeat(500_000)}`],
    ["texts", `[${"'ab',".repeat(200_000)}]`],
    ["words", "None".repeat(250_000)],
  ])("takes at most 1 µs a character: %s", (_name, text) => {
    expect(measureCpuUs(() => readPythonLiteral(text), text.length, 4)).toBeLessThanOrEqual(text.length);
  });
});
