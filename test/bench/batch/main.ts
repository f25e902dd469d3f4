/**
 * `npm run bench:batch [-- --stand-ins] [--json FILE]`: what the handler holds and costs while it grades 10,000 samples
 * of 1 KB in one streamed request, beside 1,000. The handler is a process of its own; with `--stand-ins` no program is run, which
 * leaves the handler's work as it is. Exits with 1 when a bound is missed.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readArguments } from "../../../functions/command-arguments.ts";
import { judgeBatches, measureBatches } from "./batch-figures.ts";

const usage = `npm run bench:batch [-- --stand-ins] [--json FILE]

  --stand-ins  runs no program: what is measured is the handler's work alone
  --json FILE  where all figures are written`;

function readOptions() {
  const { values } = parseArgs({
    options: { "stand-ins": { type: "boolean", default: false }, json: { type: "string" } },
  });
  return values;
}

const values = readArguments(readOptions, usage);
const figures = await measureBatches([1_000, 10_000], { standIns: values["stand-ins"] });
const bounds = judgeBatches(figures);
console.table(
  figures.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, Number(value.toPrecision(3))])),
  ),
);
console.table(bounds);
if (values.json) writeFileSync(values.json, `${JSON.stringify({ figures, bounds }, null, 2)}\n`);
const missed = bounds.filter(({ isHeld }) => !isHeld);
for (const { what } of missed) console.error(`missed: ${what}`);
if (missed.length > 0) process.exitCode = 1;
