/**
 * `npm run scale -- [--json FILE] [--page FILE] [--seed N]`: what pools of any size do with loads of any size.
 *
 * Prints a line for each point; writes all figures, and the tables of the page. The exit code is 1 when a sample had no
 * reward, when the simulated outside saw a promise broken, or when more workers or batches made things worse.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readArguments, readInteger } from "../../functions/command-arguments.ts";
import { findCliffs } from "./cliffs.ts";
import { fillPage } from "./page.ts";
import { type PointReport, sweep } from "./sweep.ts";

const usage = `npm run scale -- [--json FILE] [--page FILE] [--seed N]

  --json FILE  where all figures are written
  --page FILE  a page whose tables are filled
  --seed N     of everything that chance decides (1)`;

function readOptions() {
  const { values } = parseArgs({
    options: { json: { type: "string" }, page: { type: "string" }, seed: { type: "string", default: "1" } },
  });
  return { ...values, seed: readInteger("--seed", values.seed, 0, Number.MAX_SAFE_INTEGER) };
}

const { json, page, seed } = readArguments(readOptions, usage);
// A page that can't be read is told of now, not in some minutes; its words may change meanwhile.
if (page !== undefined) readFileSync(page);
const report = await sweep(seed, printPoint);
if (json !== undefined) writeFileSync(json, `${JSON.stringify(report, null, 2)}\n`);
if (page !== undefined) writeFileSync(page, fillPage(readFileSync(page, "utf8"), report));

for (const cliff of findCliffs([...report.alone, ...report.crowds])) {
  console.error(`cliff: ${cliff}`);
  process.exitCode = 1;
}

function printPoint(point: PointReport): void {
  const { workers, samples, batches, steps, faults, violations } = point;
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  console.log(
    [
      `${workers} workers, ${batches} × ${samples} samples, ${steps} steps:`,
      `${point.programsPerSecond.toFixed(1)} programs/s,`,
      `waits ${seconds(point.queueMsP50)}/${seconds(point.queueMsP95)},`,
      `batch ${seconds(point.batchMsP50)}/${seconds(point.batchMsP95)},`,
      `step ${seconds(point.stepMsMean)} (predicted ${seconds(point.predictedStepMs)}, ${(100 * point.error).toFixed(0)} %),`,
      `idle ${(100 * point.idleShare).toFixed(0)} %, $${point.per1000.totalUsd.toFixed(4)} per 1,000`,
    ].join(" "),
  );
  if (faults > 0 || violations.length > 0) {
    console.error(`  ${faults} samples without a reward; ${violations.join(", ")}`);
    process.exitCode = 1;
  }
}
