/**
 * `npm run simulate`: worlds until so many batches were served, seed by seed.
 *
 * Prints, and writes, what happened and every violation with its seed; the exit code is 1 if there is one.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readArguments, readInteger } from "../../functions/command-arguments.ts";
import { runSimulations } from "./simulations.ts";
import type { Weather } from "./weather.ts";
import { weathers } from "./weathers.ts";

const usage = `npm run simulate -- [--batches N] [--seed S] [--seconds T] [--weather NAME] [--json FILE]

  --batches N     how many are served in all (10000)
  --seed S        of the first world (1)
  --seconds T     stops after so long, whatever was served
  --weather NAME  of all worlds; else their seeds tell
  --json FILE     where the report is written`;
const most = Number.MAX_SAFE_INTEGER;

function readOptions() {
  const { values } = parseArgs({
    options: {
      batches: { type: "string", default: "10000" },
      seed: { type: "string", default: "1" },
      json: { type: "string" },
      weather: { type: "string" },
      seconds: { type: "string" },
    },
  });
  const { batches, seed, seconds, weather, json } = values;
  return {
    ...(weather === undefined ? {} : { weather: readWeather(weather) }),
    batches: readInteger("--batches", batches, 1, most),
    seed: readInteger("--seed", seed, 0, most),
    seconds: seconds === undefined ? Number.POSITIVE_INFINITY : readInteger("--seconds", seconds, 1, most),
    json,
  };
}

function readWeather(name: string): Weather {
  const weather = weathers.find((one) => one.name === name);
  if (weather !== undefined) return weather;
  throw new Error(`--weather: one of ${weathers.map((one) => `"${one.name}"`).join(", ")}`);
}

const { json, ...options } = readArguments(readOptions, usage);
const report = await runSimulations({
  ...options,
  onViolation: ({ what, world, seed: from, atS, trace }) => {
    console.error(`VIOLATION «${what}» in «${world}», seed ${from}, after ${atS} s:`);
    console.error(trace.map((line) => `  ${line}`).join("\n"));
  },
});
if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
console.log(JSON.stringify({ ...report, violations: report.violations.length }));
process.exitCode = report.violations.length > 0 ? 1 : 0;
