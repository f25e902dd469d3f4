import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { contend, countWrites } from "./quiet.ts";
import { simulate } from "./simulation.ts";
import { runSimulations } from "./simulations.ts";
import { storm } from "./weather.ts";

vi.setConfig({ testTimeout: 180_000 });

/** How long the worlds go on; more of them come with `npm run simulate`. */
const seconds = 100;

describe("pools in which everything fails now and then", () => {
  it("keep their promises", async () => {
    const report = await runSimulations({ batches: Number.POSITIVE_INFINITY, seed: 1, seconds });
    const { violations, byWeather, ...rest } = report;
    console.log(JSON.stringify({ ...rest, violations: violations.length }));
    expect(violations).toEqual([]);
    expect(report.batches).toBeGreaterThan(1_000);
    // Nothing of what should go wrong is missing.
    const { crashes, freezes, lostAnswers, lateWrites, tableFaults, takenOver, runsVanished } = report;
    const { answersRepeated, attemptsOvertaken } = report;
    const { createsRefused, createsAmbiguous, createsUnproved, lateLandings, sandboxDeaths, listFaults } =
      report;
    for (const [what, count] of Object.entries({
      ...{ crashes, freezes, lostAnswers, lateWrites, tableFaults, takenOver, runsVanished },
      ...{ answersRepeated, attemptsOvertaken },
      ...{ createsRefused, createsAmbiguous, createsUnproved, lateLandings, sandboxDeaths, listFaults },
    })) {
      expect([what, count > 0]).toEqual([what, true]);
    }
  });

  it("live the same life again from the same seed", async () => {
    const [one, other] = [await live(7), await live(7)];
    expect(one).toEqual(other);
    expect(await live(8)).not.toEqual(one);
  });
});

const live = (seed: number) => simulate({ seed, weather: storm, loadMs: 600_000 });

describe("a pool without faults", () => {
  it.each([
    [8, 4],
    [24, 4],
    [40, 20],
    [60, 4],
  ])("serves %i equal callers on %i workers alike", async (callers, slots) => {
    const { violations, ...fair } = await contend(1, { callers, slots, loadMs: 1_200_000 });
    console.log(JSON.stringify(fair));
    expect(violations).toEqual([]);
    expect(fair.jain).toBeGreaterThanOrEqual(0.9);
    expect(fair.longestWaitMs).toBeLessThanOrEqual(4 * fair.medianWaitMs);
  });

  it("writes twice for each leased worker, once for each batch and once in a while for each run", async () => {
    const { violations, ...cost } = await countWrites(1, 1_000);
    console.log(JSON.stringify(cost));
    expect(violations).toEqual([]);
    expect(cost.leases).toBeGreaterThan(1_000);
    expect(cost.writes).toBeLessThanOrEqual(cost.allowedWrites);
  });
});

describe("npm run simulate", () => {
  const simulateBy = (...args: string[]) =>
    spawnSync("npx", ["tsx", "test/simulation/main.ts", ...args], { encoding: "utf8", timeout: 120_000 });

  it("writes what happened, and succeeds when nothing was violated", () => {
    const folder = mkdtempSync(join(tmpdir(), "simulate-"));
    try {
      const file = join(folder, "report.json");
      const { status } = simulateBy("--batches", "300", "--seed", "5", "--json", file);
      const report = JSON.parse(readFileSync(file, "utf8"));
      expect(report).toMatchObject({ seed: 5, violations: [] });
      expect(report.batches).toBeGreaterThanOrEqual(300);
      expect(status).toBe(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("refuses what it doesn't understand", () => {
    expect(simulateBy("--batches", "many").status).toBe(2);
  });
});
