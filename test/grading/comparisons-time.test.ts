import { describe, expect, it } from "vitest";
import { type Comparison, prepareExpected } from "../../functions/grading/comparison.ts";
import { measureCpuUs } from "./cpu-time.ts";

/** Preparing and comparing once. */
const MAX_US_PER_BYTE = 1;
/** The largest output that a task may ask for. */
const LARGEST = 1_048_576;

const repeat = (unit: string, size: number) => unit.repeat(Math.ceil(size / unit.length)).slice(0, size);

/** Texts of about that size, in which a careless reader gets lost. */
function makeHostileTexts(size: number): readonly (readonly [name: string, text: string])[] {
  const fill = (unit: string, length = size) => repeat(unit, length);
  const different = Array.from({ length: size / 8 }, (_, index) => index.toString(36).padStart(4, "x"));
  const alike = Array.from({ length: size / 17_000 }, (_, index) => fill("a", 17_000) + String(index));
  return [
    ["digits", fill("1")],
    ["zeros", fill("0")],
    ["digits and a letter", `${fill("1")}x`],
    ["a float of many digits", `0.${fill("3")}`],
    ["a float that ends in zeros", `1.${fill("0")}`],
    ["a huge exponent", `1e${fill("9")}`],
    ["a huge exponent of zeros", `1e-${fill("0")}1`],
    ["points", fill(".")],
    ["signs", fill("-")],
    ["the letter e", fill("1e")],
    ["spaces", `${fill(" ")}`],
    ["spaces with something behind them", `${fill(" ")}x`],
    ["tabs before each line end", fill(`${fill("\t", 1_000)}\n`)],
    ["spaces before each letter", fill(`${fill(" ", 1_000)}x`)],
    ["line ends", fill("\n")],
    ["carriage returns", fill("\r")],
    ["CRLF", fill("\r\n")],
    ["words of one letter", fill("a ")],
    ["integers", fill("1 ")],
    ["floats", fill("0.5 ")],
    ["lines of one letter", fill("a\n")],
    ["different words", different.join(" ")],
    ["different lines", different.join("\n")],
    ["long lines that are alike", alike.join("\n")],
    ["NUL", fill("\0")],
    ["letters of three bytes", fill("日", size / 3)],
    ["JSON floats", `[${fill("0.5,")}1]`],
    ["JSON lists", `[${fill("[],")}1]`],
    ["JSON objects", `[${fill('{"a":0.5},')}1]`],
  ];
}

const hostile = makeHostileTexts(LARGEST / 4);

const tolerance = { absolute: 1e-6, relative: 1e-6 };
const comparisons: readonly (readonly [name: string, comparison: Comparison])[] = [
  ["text", { type: "text", strict: false }],
  ["text, strict", { type: "text", strict: true }],
  ["tokens", { type: "tokens" }],
  ["numbers", { type: "numbers", tolerance }],
  ["lines_unordered", { type: "lines_unordered" }],
  ["tokens_unordered", { type: "tokens_unordered" }],
  ["json with a tolerance", { type: "json", tolerance }],
];

/** Small expectations, of which each makes a comparison read the output in another way. */
const small = ["1", "1.5", "x", "[0.5]"];

function measure(call: () => unknown, bytes: number): void {
  const limitUs = bytes * MAX_US_PER_BYTE;
  expect(measureCpuUs(call, limitUs, 4)).toBeLessThanOrEqual(limitUs);
}

function compareWithItself(comparison: Comparison, text: string): boolean {
  const prepared = prepareExpected(comparison, text);
  return prepared.kind === "ok" && prepared.matches(`${text}\n`);
}

describe.each(comparisons)("%s takes at most 1 µs a byte", (_name, comparison) => {
  it.each(hostile)("to compare %s with themselves", (_kind, text) => {
    measure(() => compareWithItself(comparison, text), LARGEST / 4);
  });

  it.each(hostile)("to turn down %s", (_kind, text) => {
    for (const expected of small) {
      const prepared = prepareExpected(comparison, expected);
      if (prepared.kind === "ok") measure(() => prepared.matches(text), LARGEST / 4);
    }
  });
});

it.each(makeHostileTexts(LARGEST).slice(0, 10))(
  "numbers stays linear for a whole MiB of %s",
  (_kind, text) => {
    const comparison = { type: "numbers", tolerance } as const;
    measure(() => compareWithItself(comparison, text), LARGEST);
    for (const expected of small) {
      const prepared = prepareExpected(comparison, expected);
      if (prepared.kind === "ok") measure(() => prepared.matches(text), LARGEST);
    }
  },
);
