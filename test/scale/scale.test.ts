import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { findCliffs } from "./cliffs.ts";
import type { Figures } from "./figures.ts";
import { pointOf } from "./grid.ts";
import { type Point, runPoint } from "./load.ts";
import { fillPage } from "./page.ts";
import { costOf } from "./prices.ts";
import { chooseWorkers } from "./rule.ts";
import { type PointReport, reportPoint } from "./sweep.ts";

vi.setConfig({ testTimeout: 60_000 });

const seed = 1;
/** Fewer programs than the page is made of: enough to tell a cliff from luck. */
const enoughPrograms = 2_000;
const reportAll = async (points: readonly Omit<Point, "steps">[]) => {
  const reports: PointReport[] = [];
  for (const { workers, samples, batches } of points)
    reports.push(await reportPoint(pointOf(workers, samples, batches, enoughPrograms), seed));
  return reports;
};

/** Each sample has its reward, and nobody saw a promise broken. */
function expectWhole(reports: readonly Figures[]): void {
  for (const { faults, violations } of reports)
    expect({ faults, violations }).toEqual({ faults: 0, violations: [] });
}

describe("a pool under load", () => {
  it("grades faster with more workers, until there is nothing left for them", async () => {
    const reports = await reportAll(
      [1, 2, 4, 8, 16, 32, 64, 100].map((workers) => ({ workers, samples: 512, batches: 1 })),
    );
    expectWhole(reports);
    expect(findCliffs(reports)).toEqual([]);
    const [one, , , eight] = reports.map(({ programsPerSecond }) => programsPerSecond);
    expect((eight ?? 0) / (one ?? 0)).toBeGreaterThan(4);
  });

  it("has a hundred workers at work for one batch within half a second", async () => {
    const { crewMs, faults, violations } = await runPoint(
      { workers: 100, samples: 2_048, batches: 1, steps: 2 },
      seed,
    );
    expectWhole([{ faults, violations } as Figures]);
    expect(crewMs).toBeLessThan(500);
  });

  it.each([
    [4, 64],
    [16, 64],
    [100, 64],
  ])("of %i workers grades no slower when ever more batches of %i come at once", async (workers, samples) => {
    const reports = await reportAll([1, 2, 5, 10, 50].map((batches) => ({ workers, samples, batches })));
    expectWhole(reports);
    expect(findCliffs(reports)).toEqual([]);
  });

  it("is as fast as the rule says", async () => {
    const reports = await reportAll([
      { workers: 2, samples: 512, batches: 1 },
      { workers: 8, samples: 512, batches: 1 },
      { workers: 32, samples: 2_048, batches: 1 },
      { workers: 4, samples: 64, batches: 20 },
      { workers: 16, samples: 512, batches: 5 },
    ]);
    for (const { error } of reports) expect(Math.abs(error)).toBeLessThan(0.25);
  });

  it("loses no reward and little time when the table refuses most looks for their rate", async () => {
    const point = { workers: 100, samples: 64, batches: 50, steps: 2 };
    const limit = 500;
    const [free, refused] = [
      await runPoint(point, seed),
      await runPoint(point, seed, { readUnitsPerS: limit }),
    ];
    expect(free.mostReadUnitsPerS).toBeGreaterThan(2 * limit);
    expect(refused.violations).toEqual(["a fault in the calm"]);
    expect(refused.faults).toBe(0);
    expect(refused.programsPerSecond).toBeGreaterThan(0.75 * free.programsPerSecond);
  });

  it("lives the same life again from the same seed", async () => {
    const live = (from: number) => runPoint({ workers: 4, samples: 64, batches: 5, steps: 2 }, from);
    const [one, other] = [await live(7), await live(7)];
    expect(one).toEqual(other);
    expect(await live(8)).not.toEqual(one);
  });
});

describe("a cliff", () => {
  const flat = {
    ...{ workers: 4, samples: 64, batches: 1, programsPerSecond: 40, busyWhileGraded: 0.5 },
    ...{ queueMsP95: 0, batchMsP95: 1_000 },
  } as Figures;
  it.each([
    ["more workers that grade less", [flat, { ...flat, workers: 8, programsPerSecond: 30 }]],
    [
      "workers that are of no use to those who are busy",
      [
        { ...flat, busyWhileGraded: 0.95 },
        { ...flat, workers: 8, programsPerSecond: 50 },
      ],
    ],
    ["more batches of which fewer are graded", [flat, { ...flat, batches: 2, programsPerSecond: 30 }]],
    [
      "batches that take longer than there are more of them",
      [flat, { ...flat, batches: 2, batchMsP95: 3_000 }],
    ],
    ["waits that are longer than all that go before", [flat, { ...flat, batches: 2, queueMsP95: 2_500 }]],
    [
      "a fall far behind the top",
      [flat, { ...flat, batches: 2 }, { ...flat, batches: 50, programsPerSecond: 20 }],
    ],
  ])("is %s", (_what, points) => {
    expect(findCliffs(points)).not.toEqual([]);
  });

  it("is not what stays as it is, nor what grows with the load", () => {
    const twice = { ...flat, batches: 2, batchMsP95: 2_000, queueMsP95: 1_000 };
    expect(findCliffs([flat, { ...flat, workers: 8 }, twice])).toEqual([]);
  });
});

describe("the rule", () => {
  it.each([
    [{ programs: 512, cpuSecondsPerProgram: 0.2, waitS: 12, slowestS: 4 }, 7],
    [{ programs: 1_024, cpuSecondsPerProgram: 0.2, waitS: 12, slowestS: 4 }, 14],
    [{ programs: 8, cpuSecondsPerProgram: 0.2, waitS: 12, slowestS: 4 }, 1],
  ])("says of %o: %i workers", (step, workers) => {
    expect(chooseWorkers(step)).toBe(workers);
  });

  it("refuses to wait for less than a program may take", () => {
    const step = { programs: 8, cpuSecondsPerProgram: 0.2, waitS: 4, slowestS: 4 };
    expect(() => chooseWorkers(step)).toThrow(RangeError);
  });
});

describe("the cost", () => {
  const nothing = { workerSeconds: 0, lambdaSeconds: 0, lambdaRequests: 0, writeUnits: 0, readUnits: 0 };
  it.each([
    ["an hour of a worker", { workerSeconds: 3_600 }, 2 * 0.0504 + 0.5 * 0.0162],
    ["an hour of a handler", { lambdaSeconds: 3_600 }, 0.0829],
    ["a million requests", { lambdaRequests: 1e6 }, 0.2],
    ["a million writes and as many reads", { writeUnits: 1e6, readUnits: 1e6 }, 0.75],
  ])("of %s is the list price", (_what, used, usd) => {
    expect(costOf({ ...nothing, ...used }).totalUsd).toBeCloseTo(usd, 4);
  });
});

describe("the page", () => {
  it("has a place for each table, and its words stay", async () => {
    const page = readFileSync(new URL("../../docs/scale.md", import.meta.url), "utf8");
    const alone = await reportAll([{ workers: 2, samples: 512, batches: 1 }]);
    const crowds = await reportAll([{ workers: 2, samples: 64, batches: 2 }]);
    const filled = fillPage(page, { seed, alone, crowds });
    const words = (text: string) => text.replaceAll(/<!-- (.*) -->\n.*?<!-- end of \1 -->/gs, "<!-- $1 -->");
    expect(words(filled)).toBe(words(page));
    expect(fillPage(filled, { seed, alone, crowds })).toBe(filled);
    expect(() => fillPage(page.replace("<!-- crowds -->", ""), { seed, alone, crowds })).toThrow("crowds");
  });
});
