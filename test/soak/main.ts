/**
 * `npm run soak -- --seconds N --seed S --json FILE`: the product under load, attack and faults for so long.
 *
 * Prints, and writes, what happened; the exit code is 1 if anything happened that never must.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { runSoak } from "./soak.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "120" },
    seed: { type: "string", default: "1" },
    json: { type: "string" },
  },
});
const seconds = Number(values.seconds);
const seed = Number(values.seed);
if (!(seconds > 0) || !Number.isInteger(seed)) {
  console.error("usage: npm run soak -- [--seconds N] [--seed S] [--json FILE]");
  process.exit(2);
}

const report = await runSoak({ seconds, seed, say: (line) => console.error(line) });
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
for (const { what, atS, detail } of report.violations)
  console.error(`VIOLATION «${what}» after ${atS} s: ${JSON.stringify(detail)}`);
const { vitals: _, violations, ...summary } = report;
console.log(JSON.stringify({ ...summary, violations: violations.length }));
process.exit(report.violationCount > 0 ? 1 : 0);
