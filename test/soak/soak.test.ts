/** Two minutes of everything at once; longer ones, and incidents, come with `npm run soak`. */
import { expect, it } from "vitest";
import { runSoak } from "./soak.ts";

it("whatever fails, every reward is right or a named fault, and nothing is left in the end", async () => {
  const report = await runSoak({ seconds: 110, seed: 1 });
  const { violations, vitals: _, ...figures } = report;
  console.log(JSON.stringify(figures));
  expect(violations).toEqual([]);
  expect(report).toMatchObject({
    violationCount: 0,
    falseZeros: 0,
    falseOnes: 0,
    sandboxesLeft: 0,
    processesLeft: 0,
  });
  // Nothing of what should happen is missing.
  expect(report.batches).toBeGreaterThan(15);
  expect(report.rewards.right?.ones).toBeGreaterThan(50);
  expect(report.rewards.broken?.zeros).toBeGreaterThan(10);
  expect(report.rewards.hostile?.zeros).toBeGreaterThan(5);
  expect(report.other["sandbox killed"]).toBeGreaterThan(3);
  for (const path of ["control", "envd", "supervisor", "table"])
    expect(Object.keys(report.injected).filter((what) => what.startsWith(path))).not.toEqual([]);
}, 600_000);
