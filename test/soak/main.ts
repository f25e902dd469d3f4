/**
 * `npm run soak`: the product under load, attack and faults for so long.
 *
 * Prints, and writes, what happened; the exit code is 1 if anything happened that never must.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readArguments, readInteger } from "../../functions/command-arguments.ts";
import { runSoak } from "./soak.ts";

const usage = `npm run soak -- [--seconds N] [--seed S] [--incidents N] [--json FILE]

  --seconds N    how long batches begin (120)
  --seed S       of everything that chance decides (1)
  --incidents N  instead of faults on every way, every sandbox ends at once so many times; then no null may last
                 beyond the first time that it is sent again
  --json FILE    where all figures are written`;

function readOptions() {
  const { values } = parseArgs({
    options: {
      seconds: { type: "string", default: "120" },
      seed: { type: "string", default: "1" },
      incidents: { type: "string", default: "0" },
      json: { type: "string" },
    },
  });
  return {
    seconds: readInteger("--seconds", values.seconds, 1, 1_000_000),
    seed: readInteger("--seed", values.seed, 0, Number.MAX_SAFE_INTEGER),
    incidents: readInteger("--incidents", values.incidents, 0, 10_000),
    json: values.json,
  };
}

const { json, ...options } = readArguments(readOptions, usage);
const report = await runSoak({ ...options, say: (line) => console.error(line) });
if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
for (const { what, atS, detail } of report.violations)
  console.error(`VIOLATION «${what}» after ${atS} s: ${JSON.stringify(detail)}`);
const { vitals: _, violations, ...summary } = report;
console.log(JSON.stringify({ ...summary, violations: violations.length }));
process.exit(report.violationCount > 0 ? 1 : 0);
