import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  readMemoryLimit,
  readMemoryLimitBytes,
  readTimeLimit,
} from "../../functions/tasks/dataset-limits.ts";

describe("a dataset's time limit, in milliseconds", () => {
  it.each<[number | string, number]>([
    [2, 2_000],
    [2.0, 2_000],
    [0.5, 500],
    [1.1, 1_100],
    [0.0011, 2],
    [1 / 3, 334],
    ["2", 2_000],
    ["2.0", 2_000],
    ["2 seconds", 2_000],
    ["1 second", 1_000],
    ["2.5 seconds", 2_500],
    ["1.0 sec", 1_000],
    ["2s", 2_000],
    [" 2 Seconds. ", 2_000],
    ["500 ms", 500],
    ["1500 milliseconds", 1_500],
    ["1 minute", 60_000],
    [".5", 500],
    ["5.", 5_000],
  ])("%j is %i", (value, wanted) => {
    expect(readTimeLimit(value)).toEqual({ kind: "ok", value: wanted });
  });

  it.each<[number | string]>([
    [""],
    ["fast"],
    ["two seconds"],
    ["-1"],
    [-1],
    ["1,5 s"],
    ["1 2"],
    ["1 hour"],
    ["2 seconds per test"],
    ["1e3"],
    [1e-9],
    [1e30],
    [Number.NaN],
    ["9".repeat(50)],
    ["seconds"],
    ["constructor"],
    ["1 constructor"],
  ])("can't be %j", (value) => {
    expect(readTimeLimit(value)).toMatchObject({
      kind: "unreadable",
      detail: expect.stringContaining("seconds"),
    });
  });
});

describe("a dataset's memory limit, in mebibytes", () => {
  it.each<[number | string, number]>([
    [256, 256],
    [256.0, 256],
    [62.5, 63],
    ["256", 256],
    ["256 megabytes", 256],
    ["256.0 megabytes", 256],
    ["64 MB", 64],
    ["512 MiB", 512],
    ["262144 KB", 256],
    ["1 GB", 1_024],
    ["268435456 bytes", 256],
    ["0.25 gigabytes", 256],
  ])("%j is %i", (value, wanted) => {
    expect(readMemoryLimit(value)).toEqual({ kind: "ok", value: wanted });
  });

  it.each<[number | string, number]>([
    [268_435_456, 256],
    [256_000_000, 245],
    ["268435456", 256],
    [1, 1],
  ])("%j bytes are %i", (value, wanted) => {
    expect(readMemoryLimitBytes(value)).toEqual({ kind: "ok", value: wanted });
  });

  it.each<[number | string]>([
    [""],
    ["much"],
    [-1],
    ["256 seconds"],
    ["256 MB of RAM"],
    [Number.POSITIVE_INFINITY],
  ])("can't be %j", (value) => {
    expect(readMemoryLimit(value).kind).toBe("unreadable");
    expect(readMemoryLimitBytes(value).kind).toBe("unreadable");
  });

  it("is not bytes with another unit", () => {
    expect(readMemoryLimitBytes("256 MB").kind).toBe("unreadable");
  });
});

it("a limit is never less than the dataset's, and less than one unit more", () => {
  const seconds = fc.integer({ min: 1, max: 60_000_000 }).map((micros) => micros / 1e6);
  fc.assert(
    fc.property(seconds, (value) => {
      const reading = readTimeLimit(value.toFixed(6));
      const ms = reading.kind === "ok" ? reading.value : Number.NaN;
      expect(ms).toBeGreaterThanOrEqual(value * 1_000 - 1e-6);
      expect(ms).toBeLessThan(value * 1_000 + 1);
    }),
    { numRuns: 2_000, seed: 91 },
  );
});
