/**
 * `npm run simulate -- --batches N --seed S --json FILE`: worlds until so many batches were served, seed by seed.
 * `--weather NAME`: all of that weather.
 *
 * Prints, and writes, what happened and every violation with its seed; the exit code is 1 if there is one.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { runSimulations } from "./simulations.ts";
import { weathers } from "./weathers.ts";

const { values } = parseArgs({
  options: {
    batches: { type: "string", default: "10000" },
    seed: { type: "string", default: "1" },
    json: { type: "string" },
    weather: { type: "string" },
    /** Stops after so many seconds, whatever was served. */
    seconds: { type: "string" },
  },
});

const batches = Number(values.batches);
const seed = Number(values.seed);
const seconds = values.seconds === undefined ? Number.POSITIVE_INFINITY : Number(values.seconds);
const weather = weathers.find(({ name }) => name === values.weather);
if (values.weather !== undefined && weather === undefined) {
  console.error(`weathers: ${weathers.map(({ name }) => name).join(", ")}`);
  process.exit(2);
}
if (!(batches > 0) || !Number.isInteger(seed) || !(seconds > 0)) {
  console.error("usage: npm run simulate -- [--batches N] [--seed S] [--json FILE] [--seconds T]");
  process.exit(2);
}

const report = await runSimulations({
  batches,
  seed,
  seconds,
  ...(weather === undefined ? {} : { weather }),
  onViolation: ({ what, world, seed: from, atS, trace }) => {
    console.error(`VIOLATION «${what}» in «${world}», seed ${from}, after ${atS} s:`);
    console.error(trace.map((line) => `  ${line}`).join("\n"));
  },
});
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
console.log(JSON.stringify({ ...report, violations: report.violations.length }));
process.exitCode = report.violations.length > 0 ? 1 : 0;
