import { expect, it } from "vitest";
import { prepareExpected } from "../../functions/grading/comparison.ts";
import { measureCpuUs } from "./cpu-time.ts";

const SIZE = 1_048_576;
/** Reading twice and comparing. Containers cost most: each is an object of its own. */
const MAX_US_PER_BYTE = 1;

const fill = (unit: string, size = SIZE) => unit.repeat(Math.ceil(size / unit.length));
const list = (unit: string) => `[${fill(`${unit},`)}${unit}]`;
const members = (name: (index: number) => string, count: number) =>
  `{${Array.from({ length: count }, (_, index) => `"${name(index)}":${index}`).join(",")}}`;

it.each([
  ["one integer", fill("1")],
  ["one float", `0.${fill("1")}`],
  ["one float with many zeros", `0.${fill("0")}1e${SIZE}`],
  ["an exponent of many digits", `1e-${fill("9")}`],
  ["one string", `"${fill("a")}"`],
  ["one string of escapes", `"${fill("\\u0061")}"`],
  ["one string of lone surrogates", `"${fill("\\ud800")}"`],
  ["one string of backslashes", `"${fill("\\\\")}"`],
  ["integers", list("1")],
  ["floats", list("0.1")],
  ["booleans", list("true")],
  ["strings", list('""')],
  ["empty arrays", list("[]")],
  ["empty objects", list("{}")],
  ["nested arrays", list(`${"[".repeat(998)}${"]".repeat(998)}`)],
  ["nested objects", list(`${'{"":'.repeat(998)}1${"}".repeat(998)}`)],
  ["a long string inside many arrays", `${"[".repeat(1_000)}"${fill("a")}"${"]".repeat(1_000)}`],
  ["objects", list('{"a":1}')],
  ["different keys", members((index) => `k${index}`, 70_000)],
  ["numbers as keys", members((index) => `${index * 4_096}`, 60_000)],
  ["the same key", members(() => "a", 120_000)],
  ["keys that are long and alike", members((index) => `${"a".repeat(1_000)}${index}`, 1_000)],
  ["spaces", `${fill(" ")}1`],
])("takes at most 1 µs a byte to read and compare: %s", (_name, text) => {
  const bytes = Buffer.byteLength(text);
  const compare = () => {
    const prepared = prepareExpected({ type: "json" }, text);
    if (prepared.kind === "unreadable") throw new Error(prepared.detail);
    expect(prepared.matches(text)).toBe(true);
  };
  expect(bytes).toBeGreaterThan(900_000);
  expect(measureCpuUs(compare, bytes * MAX_US_PER_BYTE, 4) / bytes).toBeLessThanOrEqual(MAX_US_PER_BYTE);
});

it.each([
  ["open arrays", fill("[")],
  ["open objects", fill('{"a":')],
  ["an open string", `"${fill("a")}`],
  ["an open string of backslashes", `"${fill("\\")}`],
  ["minus signs", fill("-")],
  ["integers without commas", fill("1 ")],
  ["a list without an end", `[${fill("1,")}`],
  ["garbage", fill("\u0000")],
  ["spaces only", fill(" ")],
])("takes at most 1 µs a byte to turn down: %s", (_name, text) => {
  const prepared = prepareExpected({ type: "json" }, "1");
  if (prepared.kind === "unreadable") throw new Error(prepared.detail);
  expect(prepared.matches(text)).toBe(false);
  const limitUs = text.length * MAX_US_PER_BYTE;
  expect(measureCpuUs(() => prepared.matches(text), limitUs, 4)).toBeLessThanOrEqual(limitUs);
});
