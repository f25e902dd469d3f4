import { expect, it } from "vitest";
import { importBundled } from "./bundled.ts";
import { measureCpuUs } from "./cpu-time.ts";
import { makeHostileTexts } from "./hostile-texts.ts";

const { extractProgram } = await importBundled<typeof import("../../functions/grading/extraction.ts")>(
  "../../functions/grading/extraction.ts",
  import.meta.url,
);

const MAX_US_PER_BYTE = 0.2;
const hostileTexts = makeHostileTexts(262_144);

it.each(hostileTexts)("takes at most 0.2 µs a byte for: $name", ({ text }) => {
  const bytes = Buffer.byteLength(text);
  expect(bytes).toBeGreaterThan(250_000);
  for (const reasoning of ["auto", "opened", "none"] as const) {
    const call = () => extractProgram(text, { extraction: "last", reasoning });
    const spentUs = measureCpuUs(call, bytes * MAX_US_PER_BYTE, 6);
    expect(spentUs / bytes, reasoning).toBeLessThanOrEqual(MAX_US_PER_BYTE);
  }
});

it.each(makeHostileTexts(2_097_152).filter((_, index) => index % 3 === 0))(
  "stays linear for eight times the text: $name",
  ({ text }) => {
    const bytes = Buffer.byteLength(text);
    const call = () => extractProgram(text, { extraction: "first", reasoning: "auto" });
    expect(measureCpuUs(call, bytes * MAX_US_PER_BYTE, 4) / bytes).toBeLessThanOrEqual(MAX_US_PER_BYTE);
  },
);

it("is a test of many kinds of text, none of them short", () => {
  expect(hostileTexts.length).toBeGreaterThanOrEqual(60);
  expect(new Set(hostileTexts.map(({ text }) => text)).size).toBe(hostileTexts.length);
});
