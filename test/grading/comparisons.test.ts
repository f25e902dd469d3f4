import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Comparison, prepareExpected } from "../../functions/grading/comparison.ts";
import type { Tolerance } from "../../functions/grading/tolerance.ts";
import { jsonToleranceRows } from "./comparisons/json-rows.ts";
import { absoluteRows, exactRows, numberRows, relativeRows } from "./comparisons/number-rows.ts";
import type { Row } from "./comparisons/row.ts";
import {
  lineRows,
  strictTextRows,
  textRows,
  tokenRows,
  unorderedTokenRows,
} from "./comparisons/text-rows.ts";

const millionth: Tolerance = { absolute: 1e-6, relative: 1e-6 };
const text: Comparison = { type: "text", strict: false };
const strictText: Comparison = { type: "text", strict: true };
const tokens: Comparison = { type: "tokens" };
const lines: Comparison = { type: "lines_unordered" };
const unorderedTokens: Comparison = { type: "tokens_unordered" };
const numbers = (tolerance: Tolerance): Comparison => ({ type: "numbers", tolerance });
const jsonWithin = (tolerance: Tolerance): Comparison => ({ type: "json", tolerance });

const tables: readonly (readonly [name: string, comparison: Comparison, rows: readonly Row[]])[] = [
  ["text", text, textRows],
  ["text, strict", strictText, strictTextRows],
  ["tokens", tokens, tokenRows],
  ["numbers", numbers(millionth), numberRows],
  ["numbers within 0.01", numbers({ absolute: 0.01, relative: 0 }), absoluteRows],
  ["numbers within a hundredth part", numbers({ absolute: 0, relative: 0.01 }), relativeRows],
  ["numbers without tolerance", numbers({ absolute: 0, relative: 0 }), exactRows],
  ["lines_unordered", lines, lineRows],
  ["tokens_unordered", unorderedTokens, unorderedTokenRows],
  ["json with a tolerance", jsonWithin(millionth), jsonToleranceRows],
];

function matches(comparison: Comparison, expected: string, stdout: string): boolean {
  const prepared = prepareExpected(comparison, expected);
  if (prepared.kind === "unreadable") throw new Error(prepared.detail);
  return prepared.matches(stdout);
}

function shorten(value: string): string {
  return JSON.stringify(value).slice(0, 50);
}

describe.each(tables)("%s", (_name, comparison, rows) => {
  it.each(
    rows.map(
      ([expected, stdout, isRight, reason]) =>
        [shorten(expected), shorten(stdout), isRight, reason, expected, stdout] as const,
    ),
  )("%s, printed %s: %s, for: %s", (_expected, _stdout, isRight, _reason, expected, stdout) => {
    expect(matches(comparison, expected, stdout)).toBe(isRight);
  });
});

it("is tried on more than 200 pairs, each with its reason, right and wrong ones alike", () => {
  const rows = tables.flatMap(([, , table]) => table);
  expect(rows.length).toBeGreaterThanOrEqual(200);
  const right = rows.filter(([, , isRight]) => isRight).length;
  expect(Math.min(right, rows.length - right)).toBeGreaterThan(80);
  for (const [, , , reason] of rows) expect(reason.length).toBeGreaterThan(3);
});

describe("an expected output that nothing could equal", () => {
  it.each([
    ["numbers", numbers(millionth), "nan", "its word 1 is NaN"],
    ["numbers", numbers(millionth), "1.5 -Inf", "its word 2 is NaN"],
    ["numbers", numbers(millionth), "+INFINITY", "its word 1 is NaN"],
    ["numbers", numbers(millionth), "1e999", "its word 1 is NaN"],
    ["numbers", numbers(millionth), `${"9".repeat(400)}.0`, "its word 1 is NaN"],
    ["json with a tolerance", jsonWithin(millionth), "NaN", "it holds NaN"],
    ["json with a tolerance", jsonWithin(millionth), "[1e999]", "it holds NaN"],
    ["json with a tolerance", jsonWithin(millionth), "[1,", "not one JSON value"],
    ["json with a tolerance", jsonWithin(millionth), "", "not one JSON value"],
  ])("can't be read by %s: %j %s", (_name, comparison, expected, detail) => {
    expect(prepareExpected(comparison, expected)).toEqual({
      kind: "unreadable",
      detail: expect.stringContaining(detail),
    });
  });

  it.each([
    ["an integer of any length", "9".repeat(400)],
    ["a word with a number in it", "x1e999"],
    ["a word that begins like one", "nano"],
    ["a float that is almost zero", "1e-999"],
  ])("is not %s", (_name, expected) => {
    expect(matches(numbers(millionth), expected, expected)).toBe(true);
  });
});

/** Texts in which blanks, line ends, words and numbers meet in every way. */
const piece = fc.constantFrom(
  ..." |\n|\r\n|\r|\t|\v|\u00a0|a|b|A|1|2|0|-|+|.|1.5|e5|1e-7|0.1|-0|nan|é|\u0000".split("|"),
  " ",
  "\n",
  "7 ",
);
const anyText = fc.oneof(
  fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join("")),
  fc.string(),
);
const runs = { numRuns: 2_000, seed: 51 };

const all: readonly (readonly [string, Comparison])[] = [
  ...tables.map(([name, comparison]) => [name, comparison] as const),
  ["json", { type: "json" }],
];

describe("any two texts", () => {
  it.each(all)("%s: what can be expected matches itself", (_name, comparison) => {
    const expectedText = comparison.type === "json" ? fc.json() : anyText;
    fc.assert(
      fc.property(expectedText, (expected) => {
        const prepared = prepareExpected(comparison, expected);
        if (prepared.kind === "ok") expect(prepared.matches(expected)).toBe(true);
      }),
      runs,
    );
  });

  const symmetric = all.filter(([name]) => !/numbers (within|$)|hundredth|^numbers$|tolerance/.test(name));
  const symmetricTolerances: readonly (readonly [string, Comparison])[] = [
    ["json within 0.5", jsonWithin({ absolute: 0.5, relative: 0 })],
    ["json without tolerance", jsonWithin({ absolute: 0, relative: 0 })],
  ];
  it.each([...symmetric, ...symmetricTolerances])(
    "%s: it doesn't matter which is expected",
    (_name, comparison) => {
      const pair = comparison.type === "json" ? fc.json({ maxDepth: 1 }) : anyText;
      fc.assert(
        fc.property(pair, pair, (one, other) => {
          expect(matches(comparison, one, other)).toBe(matches(comparison, other, one));
        }),
        runs,
      );
    },
  );

  const integer = fc.tuple(
    fc.constantFrom("", "+", "-"),
    fc.constantFrom("", "0", "00"),
    fc.bigInt({ min: 0n, max: 10n ** 30n }),
  );
  const integers = fc
    .array(integer, { minLength: 1, maxLength: 4 })
    .map((items) => items.map(([sign, zeros, value]) => `${sign}${zeros}${value}`).join(" "));
  it("numbers: integers match exactly those of the same value", () => {
    const valuesOf = (words: string) => words.split(" ").map((word) => BigInt(word.replace("+", "")));
    fc.assert(
      fc.property(integers, integers, fc.boolean(), (one, other, same) => {
        const printed = same ? one : other;
        const isSame = String(valuesOf(one)) === String(valuesOf(printed));
        expect(matches(numbers(millionth), one, printed)).toBe(isSame);
        expect(matches(numbers(millionth), printed, one)).toBe(isSame);
      }),
      runs,
    );
  });

  /** Wherever the first passes, the second does. */
  const weaker: readonly (readonly [string, Comparison, string, Comparison])[] = [
    ["text, strict", strictText, "text", text],
    ["text", text, "tokens", tokens],
    ["text", text, "lines_unordered", lines],
    ["tokens", tokens, "numbers", numbers(millionth)],
    ["tokens", tokens, "tokens_unordered", unorderedTokens],
    ["lines_unordered", lines, "tokens_unordered", unorderedTokens],
    ["numbers without tolerance", numbers({ absolute: 0, relative: 0 }), "numbers", numbers(millionth)],
    ["json", { type: "json" }, "json with a tolerance", jsonWithin(millionth)],
  ];
  it.each(weaker)("what %s passes, %s passes", (strictName, strict, _name, lenient) => {
    let passed = 0;
    const expectedText = strictName === "json" ? fc.json({ maxDepth: 2 }) : anyText;
    fc.assert(
      fc.property(expectedText, expectedText, fc.nat(5), (one, other, kind) => {
        const stdout = disturb(one, other, kind);
        const prepared = prepareExpected(strict, one);
        const second = prepareExpected(lenient, one);
        if (prepared.kind !== "ok" || second.kind !== "ok" || !prepared.matches(stdout)) return;
        passed += 1;
        expect(second.matches(stdout)).toBe(true);
      }),
      runs,
    );
    expect(passed, "the property was tried").toBeGreaterThan(100);
  });
});

/** Another text, or the same with a harmless or harmful change. */
function disturb(one: string, other: string, kind: number): string {
  if (kind === 0) return other;
  if (kind === 1) return `${one}\n`;
  if (kind === 2) return one.replaceAll("\n", "\r\n");
  if (kind === 3) return one.split("\n").reverse().join("\n");
  return kind === 4 ? one.split(" ").reverse().join(" ") : one;
}
