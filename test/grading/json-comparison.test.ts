import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { prepareExpected } from "../../functions/grading/comparison.ts";
import { compareJson, readExpectedJson } from "../../functions/grading/json-comparison.ts";

function matches(expected: string, stdout: string): boolean {
  const prepared = prepareExpected({ type: "json" }, expected);
  if (prepared.kind === "unreadable") throw new Error(prepared.detail);
  return prepared.matches(stdout);
}

function nest(depth: number, inner = ""): string {
  return "[".repeat(depth) + inner + "]".repeat(depth);
}

/** A row of two texts with a short form of each in front, for the test's name. */
function nameRow(row: readonly string[]): [oneName: string, otherName: string, one: string, other: string] {
  const [one = "", other = ""] = row;
  const shorten = (text: string) => JSON.stringify(text).slice(0, 60);
  return [shorten(one), shorten(other), one, other];
}

const LONG = "1234567890".repeat(1_000);

describe("equal values", () => {
  it.each(
    [
      ["1", " 1\r\n\t"],
      ["-0", "0"],
      ["1e2", "100.0"],
      ["1E+2", "100.0"],
      ["0.1", "1e-1"],
      ["1e16", "10000000000000000.0"],
      ["9007199254740993.0", "9007199254740992.0"],
      ["1e-400", "0.0"],
      [LONG, LONG],
      ['{"a": 1, "b": 2}', '{"b":2,"a":1}'],
      ['{"a": 1}', '{"a": 0, "a": 1}'],
      ['{"a": 1}', '{"a": NaN, "a": 1}'],
      ['{"a": 1}', '{"\\u0061": 1}'],
      ['"😀"', '"\\ud83d\\uDE00"'],
      ['"\\ud800"', '"\\uD800"'],
      ['"/"', '"\\/"'],
      ['"\u007f\u2028"', '"\\u007f\\u2028"'],
      ['{"__proto__": 1}', '{"__proto__": 1}'],
      ["[]", "[ ]"],
      ["{}", "{\n}"],
      [nest(1_000), nest(1_000)],
    ].map(nameRow),
  )("%s is %s", (_one, _other, expected, stdout) => {
    expect(matches(expected, stdout)).toBe(true);
    expect(matches(stdout, expected)).toBe(true);
  });
});

describe("different values", () => {
  it.each(
    [
      ["1", "1.0"],
      ["1", "true"],
      ["0", "false"],
      ["null", '"null"'],
      ["null", "0"],
      ["1", '"1"'],
      ["0.0", "-0.0"],
      ["0", "-0.0"],
      ["1e16", "10000000000000000"],
      ["0.3", "0.30000000000000004"],
      ["9007199254740993", "9007199254740992"],
      [LONG, `${LONG.slice(0, -1)}1`],
      [LONG, `-${LONG}`],
      ["[]", "{}"],
      ["[]", "[[]]"],
      ["[1,2]", "[2,1]"],
      ["[1,2]", "[12]"],
      ["[1]", "[1,1]"],
      ['["a,b"]', '["a","b"]'],
      ['{"a": 1}', '{"a": 1, "b": null}'],
      ['{"a": null}', "{}"],
      ['{"__proto__": 1}', "{}"],
      ['{"a": 1, "b": 2}', '{"a:1,b": 2}'],
      ['{"a": {"b": 1}}', '{"a": {}, "b": 1}'],
      ['"\\ud83d"', '"\\ude00"'],
      ['"\\\\u0061"', '"a"'],
      ['"é"', '"e\u0301"'],
      [nest(1_000), nest(999)],
    ].map(nameRow),
  )("%s is not %s", (_one, _other, expected, stdout) => {
    expect(matches(expected, stdout)).toBe(false);
    expect(matches(stdout, expected)).toBe(false);
  });
});

describe("values that nothing equals", () => {
  it.each([["NaN"], ["Infinity"], ["-Infinity"], ["1e999"], ["-1e400"], ["[1, NaN]"], ['{"a": 1e999}']])(
    "%s",
    (text) => {
      expect(matches("1", text)).toBe(false);
      expect(readExpectedJson(text)).toEqual({
        kind: "unreadable",
        detail: "it holds NaN, Infinity or a number as large, which no output can match",
      });
    },
  );

  it.each([[1_001], [100_000]])("nesting of %d levels", (depth) => {
    expect(matches("1", nest(depth))).toBe(false);
    expect(matches("1", '{"a":'.repeat(depth))).toBe(false);
  });
});

/** Texts that are not one JSON value. */
const UNREADABLE: readonly (readonly [text: string, detail: string])[] = [
  ["", "expected a value at character 1"],
  [" \n", "expected a value at character 3"],
  ["\ufeff1", "expected a value at character 1"],
  ["1 2", "unexpected text after the value at character 3"],
  ["1\u00a0", "unexpected text after the value at character 2"],
  ["1\0", "unexpected text after the value at character 2"],
  ["01", "unexpected text after the value at character 2"],
  ["1.", "unexpected text after the value at character 2"],
  ["1e", "unexpected text after the value at character 2"],
  ["1.e5", "unexpected text after the value at character 2"],
  [".5", "expected a value at character 1"],
  ["+1", "expected a value at character 1"],
  ["-", "expected a value at character 1"],
  ["--1", "expected a value at character 1"],
  ["-NaN", "expected a value at character 1"],
  ["True", "expected a value at character 1"],
  ["nul", "expected a value at character 1"],
  ["'a'", "expected a value at character 1"],
  ["٣", "expected a value at character 1"],
  ["[1,]", "expected a value at character 4"],
  ["[1 2]", "expected ',' or ']' at character 4"],
  ["[1}", "expected ',' or ']' at character 3"],
  ["[", "expected a value at character 2"],
  ["{", "expected a key in double quotes at character 2"],
  ["{1: 2}", "expected a key in double quotes at character 2"],
  ['{"a" 1}', "expected ':' at character 6"],
  ['{"a": 1,}', "expected a key in double quotes at character 9"],
  ['{"a": 1', "expected ',' or '}' at character 8"],
  ['"a', "a string without its closing quote at character 1"],
  ['"a\\"', "a string without its closing quote at character 1"],
  ['"a\tb"', "a control character in a string at character 3"],
  ['"\\x"', "a string with an invalid escape at character 1"],
  ['["\\u12g4"]', "a string with an invalid escape at character 2"],
  ['"\\u{41}"', "a string with an invalid escape at character 1"],
  [nest(1_001), "nested deeper than 1,000 levels at character 1001"],
];

describe("a text that is not one JSON value", () => {
  it.each(UNREADABLE.map(nameRow))("can't be expected: %s, %s", (_text, _detail, text, detail) => {
    expect(readExpectedJson(text)).toEqual({ kind: "unreadable", detail: `not one JSON value: ${detail}` });
  });

  it.each(UNREADABLE.map(nameRow))("matches nothing: %s", (_text, _detail, text) => {
    for (const expected of ["1", "[1]", '""', '{"a": 1}']) expect(matches(expected, text)).toBe(false);
  });
});

describe("any JSON value", () => {
  it("is read back from what JSON.stringify writes, and differs from every other value", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.json({ maxDepth: 4 }), (one, other) => {
        expect(matches(one, one)).toBe(true);
        // Without floats, JavaScript's own reader tells values apart.
        fc.pre(!/[.eE]|-0/.test(`${one}${other}`.replace(/true|false/g, "")));
        expect(matches(one, other)).toBe(JSON.stringify(sortKeys(one)) === JSON.stringify(sortKeys(other)));
      }),
      { numRuns: 3_000, seed: 21 },
    );
  });

  it("never makes reading throw, whatever the text", () => {
    const piece = fc.constantFrom(
      "[",
      "]",
      "{",
      "}",
      ",",
      ":",
      '"',
      "\\",
      "u00",
      "1",
      "-",
      ".",
      "e",
      "true",
      "NaN",
      " ",
      "\0",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
        const reading = readExpectedJson(pieces.join(""));
        if (reading.kind === "ok") expect(typeof compareJson(reading.value, pieces.join(""))).toBe("boolean");
      }),
      { numRuns: 5_000, seed: 22 },
    );
  });
});

function sortKeys(text: string): unknown {
  return JSON.parse(text, (_key, value) => {
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    return isObject ? { members: Object.entries(value).sort() } : value;
  });
}
