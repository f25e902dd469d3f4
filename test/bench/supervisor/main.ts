/**
 * `npm run bench:supervisor [-- --before REF] [--cases N] [--rounds N] [--json FILE]`: what one case costs the
 * supervisor, and where that goes. With `--before` the sources of another commit take turns with those of now.
 *
 * CPU time is what the kernel accounts to the supervisor's processes, the ended ones among them; it hardly depends on
 * what else the machine does. The table of stages comes from runs of their own, since looking costs time too.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readArguments, readInteger } from "../../../functions/command-arguments.ts";
import { type CaseCost, meanCost, measureCost } from "./case-cost.ts";
import { copySources, copySourcesAt, type Sources } from "./sources.ts";
import { measureStages, type Stages } from "./stages.ts";
import { startSupervisor } from "./supervisor-process.ts";

const usage = `npm run bench:supervisor [-- --before COMMIT] [--cases N] [--rounds N] [--json FILE]

  --before COMMIT  whose sources take turns with those of now
  --cases N        in a round (400)
  --rounds N       of each (5)
  --json FILE      where all figures are written`;

function readOptions() {
  const { values } = parseArgs({
    options: {
      before: { type: "string" },
      cases: { type: "string", default: "400" },
      rounds: { type: "string", default: "5" },
      json: { type: "string" },
    },
  });
  return {
    ...values,
    cases: readInteger("--cases", values.cases, 1, 1_000_000),
    rounds: readInteger("--rounds", values.rounds, 1, 1_000_000),
  };
}

const values = readArguments(readOptions, usage);
const { cases } = values;
const contenders = new Map<string, Sources>();
if (values.before) contenders.set(values.before, copySourcesAt(values.before));
contenders.set("now", copySources());

try {
  const costs = await measureCosts();
  console.log(`\nms of CPU per case (user and system), over ${values.rounds} rounds of ${cases} cases`);
  console.table(Object.fromEntries(costs));
  const stages = new Map<string, Stages>();
  for (const [name, sources] of contenders) stages.set(name, await measureStages(sources, cases));
  for (const [name, found] of stages) {
    console.log(`\nwhere it goes: ${name}`);
    console.table(found);
  }
  const [first, ...others] = [...costs.values()];
  for (const other of others) {
    const share = other.all / (first?.all ?? Number.NaN);
    console.log(`a case costs ${share.toFixed(2)} of what it did (${values.before})`);
  }
  if (values.json) {
    const report = { cases, costs: Object.fromEntries(costs), stages: Object.fromEntries(stages) };
    writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  }
} finally {
  for (const sources of contenders.values()) sources.remove();
}

/** Interleaved, so that a noisy moment of the machine falls on all. */
async function measureCosts(): Promise<ReadonlyMap<string, CaseCost>> {
  const rounds = new Map<string, CaseCost[]>();
  const running = [];
  try {
    for (const [name, sources] of contenders) running.push({ name, process: await startSupervisor(sources) });
    for (const { process } of running) await process.execute(1, 20);
    for (let round = 0; round < values.rounds; round += 1) {
      for (const { name, process } of running) {
        rounds.set(name, [...(rounds.get(name) ?? []), await measureCost(process, cases)]);
      }
    }
  } finally {
    for (const { process } of running) await process.stop();
  }
  return new Map([...rounds].map(([name, found]) => [name, meanCost(found)]));
}
