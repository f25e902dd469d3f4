import { describe, expect, it } from "vitest";
import { backoffMs, drawSome, pollDelayMs } from "../../functions/pool/polling.ts";
import { plans, poolSettings } from "../../functions/pool/settings.ts";
import { seeded } from "./test-pool.ts";

describe("the time until the next look", () => {
  it.each([
    ["a newcomer, on average", 0, 0.5, 1_500],
    ["a newcomer, at the least", 0, 0, 750],
    ["a newcomer, at the most", 0, 1, 2_250],
    ["one whose clock was set back", -5_000, 0.5, 1_500],
    ["one that has waited a minute", 60_000, 0.5, 300],
    ["one that has waited for ten minutes", 600_000, 0.5, 300],
  ])("%s, whatever is usual", (_, waitedMs, random, expected) => {
    for (const typicalMs of [0, 30_000, 600_000]) {
      expect(pollDelayMs(1_000, waitedMs, typicalMs, random)).toBe(expected);
    }
  });

  it.each([
    ["5 s where nobody waits for long", 5_000, 0],
    ["18 s where 10 s are usual", 18_000, 10_000],
    ["a minute where ten are usual", 60_000, 600_000],
  ])("is shortest after %s", (_, oldMs, typicalMs) => {
    expect(pollDelayMs(1_000, oldMs, typicalMs, 0.5)).toBe(300);
    expect(pollDelayMs(1_000, oldMs / 2, typicalMs, 0.5)).toBe(900);
  });
});

describe("backing off", () => {
  it.each([
    [1, 1_000],
    [2, 2_000],
    [5, 16_000],
    [6, 30_000],
    [99, 30_000],
  ])("after %i failures it is at most %i ms", (failures, mostMs) => {
    expect(backoffMs(failures, 1)).toBe(mostMs);
    expect(backoffMs(failures, 0)).toBe(0);
  });
});

describe("drawing some", () => {
  it("draws each at most once, and no more than there are", () => {
    const random = seeded(3);
    expect(drawSome([1, 2, 3], 5, random).sort()).toEqual([1, 2, 3]);
    expect(drawSome([], 3, random)).toEqual([]);
  });

  it("prefers none", () => {
    const random = seeded(4);
    const firsts = Array.from({ length: 3_000 }, () => drawSome(["a", "b", "c"], 1, random)[0]);
    for (const letter of ["a", "b", "c"]) {
      expect(firsts.filter((first) => first === letter).length).toBeGreaterThan(850);
    }
  });
});

describe("settings", () => {
  it("are consistent for both plans", () => {
    for (const plan of Object.values(plans))
      expect(poolSettings(plan, { supervisorVersion: "v1" })).toBeTruthy();
  });

  it.each([
    [{ slots: 0 }, "slots must be 1 to 1000"],
    [{ leaseMs: 40_000 }, "a lease must outlive two extensions"],
    [{ graceMs: 30_000 }, "a lease must outlive twice the clocks' difference"],
    [{ createTimeoutMs: 110_000 }, "a creation must time out before its slot is taken back"],
    [{ minRemainingMs: 60_000 }, "a worker must outlive a lease"],
    [{ ttlMs: 130_000 }, "a new worker must have life left"],
    [{ supervisorVersion: "0123456789abc" }, "supervisorVersion must have at most 12 bytes"],
    [
      { lifeMs: 900_000 },
      "lifeMs is 900000, and must be at least 1015000: a batch's deadline_ms may be 840000",
    ],
    [{ supervisorVersion: "" }, "supervisorVersion must not be empty"],
  ])("%o are refused", (overrides, problem) => {
    expect(() => poolSettings(plans.hobby, { supervisorVersion: "v1", ...overrides })).toThrow(problem);
  });
});
