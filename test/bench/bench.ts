/**
 * `npm run bench`: what grading costs on this machine, beside the
 * published recipe's shape.
 *
 * Both grade the same programs on the same server of sandboxes, with as many workers, in turn. CPU seconds are those of
 * whole process trees: they are what to compare between machines, while wall time also says how noisy this one was.
 * Exits with 1 when a floor is missed.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readArguments } from "../../functions/command-arguments.ts";
import type { Contestant } from "./contestant.ts";
import { createEndpointContestant } from "./endpoint-contestant.ts";
import { type Figures, figuresOf } from "./figures.ts";
import { judgeFloors, type LoadFigures } from "./floors.ts";
import { type Load, loads, warmUp } from "./loads.ts";
import { startLocalStackProcess } from "./local-stack-process.ts";
import { measureRound, type Round } from "./measurement.ts";
import { drawPicture } from "./picture.ts";
import { measureInterpreterStart } from "./recipe/interpreter-start.ts";
import { createRecipeContestant } from "./recipe/recipe-contestant.ts";
import { countRequests } from "./requests.ts";

const workers = 2;

interface Measured {
  readonly figures: ReadonlyMap<string, LoadFigures>;
  /** What the recipe pays at least four times for a program of three cases. */
  readonly interpreterStartCpuSeconds: number;
}

const usage = `npm run bench [-- --json FILE] [--picture FILE] [--only TEXT]

  --json FILE     where all figures are written
  --picture FILE  where they are drawn
  --only TEXT     only the loads whose name has this in it; then no floor is judged`;

function readOptions() {
  const { values } = parseArgs({
    options: { json: { type: "string" }, picture: { type: "string" }, only: { type: "string", default: "" } },
  });
  return values;
}

const values = readArguments(readOptions, usage);
const chosen = loads.filter(({ name }) => name.includes(values.only));

const { figures, interpreterStartCpuSeconds } = await measureLoads();
console.log(`a fresh interpreter costs ${interpreterStartCpuSeconds.toPrecision(3)} s of CPU here`);
for (const [name, { endpoint, recipe }] of figures) {
  console.log(`\n${name}`);
  console.table({ endpoint: rounded(endpoint), ...(recipe && { recipe: rounded(recipe) }) });
}
if (chosen.length === loads.length) await judge();

async function measureLoads(): Promise<Measured> {
  const stack = await startLocalStackProcess(["--no-cron", "--plan", "pro"]);
  const endpoint = createEndpointContestant(stack);
  const recipe = await createRecipeContestant(stack.e2b, workers);
  try {
    for (const contestant of [endpoint, recipe]) await contestant.grade(warmUp.make(0));
    const byLoad = new Map<string, LoadFigures>();
    for (const load of chosen) byLoad.set(load.name, await measureLoad(load, endpoint, recipe, stack.pid));
    return { figures: byLoad, interpreterStartCpuSeconds: await measureInterpreterStart(stack.e2b) };
  } finally {
    await recipe.close();
    await stack.stop();
  }
}

async function measureLoad(
  load: Load,
  endpoint: Contestant,
  recipe: Contestant,
  serverPid: number,
): Promise<LoadFigures> {
  const ours: Round[] = [];
  const theirs: Round[] = [];
  for (let round = 0; round < load.rounds; round += 1) {
    ours.push(await measureRound(endpoint, load, round, serverPid));
    if (load.isCompared) theirs.push(await measureRound(recipe, load, round, serverPid));
  }
  const programs = load.expected.length;
  return {
    endpoint: figuresOf(ours, programs),
    ...(load.isCompared && { recipe: figuresOf(theirs, programs) }),
  };
}

async function judge(): Promise<void> {
  const requests = await countRequests(warmUp, workers);
  console.log("\nrequests of one warm batch of 64, on average");
  console.table(requests);
  const floors = judgeFloors(figures, requests.endpoint.requestsPerProgram);
  console.table(floors);
  const report = {
    loads: Object.fromEntries(figures),
    interpreter_start_cpu_seconds: interpreterStartCpuSeconds,
    requests,
    floors,
  };
  if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  if (values.picture) writeFileSync(values.picture, drawPicture(figures));
  const missed = floors.filter(({ isHeld }) => !isHeld);
  for (const { what } of missed) console.error(`missed: ${what}`);
  if (missed.length > 0) process.exitCode = 1;
}

function rounded(figuresOfLoad: Figures): Record<string, number> {
  return Object.fromEntries(
    Object.entries(figuresOfLoad).map(([name, value]) => [name, Number(value.toPrecision(3))]),
  );
}
