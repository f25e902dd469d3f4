/**
 * `npm run bench:handover [-- --rounds N] [--json FILE]`: how long several batches at once take on one worker, beside one
 * batch of all their samples, over the real local stack. The loads take turns; medians count. Exits with 1 when several
 * small batches take longer than 1.2 times the large one.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { readArguments, readInteger } from "../../../functions/command-arguments.ts";
import { type LocalStackProcess, startLocalStackProcess } from "../local-stack-process.ts";

/** Batches at once, and samples of each. */
const loads = [
  { batches: 1, samples: 20 },
  { batches: 2, samples: 10 },
  { batches: 1, samples: 100 },
  { batches: 10, samples: 10 },
] as const;
const bounds = [
  { small: loads[1], large: loads[0], most: 1.2 },
  { small: loads[3], large: loads[2], most: 1.2 },
] as const;

type Load = (typeof loads)[number];

const usage = `npm run bench:handover -- [--rounds N] [--json FILE]

  --rounds N   how often each load is sent (9); medians count
  --json FILE  where the figures are written`;

function readOptions() {
  const { values } = parseArgs({
    options: { rounds: { type: "string", default: "9" }, json: { type: "string" } },
  });
  return { rounds: readInteger("--rounds", values.rounds, 1, 1_000), json: values.json };
}

const { rounds, json } = readArguments(readOptions, usage);

let programs = 0;

/** No two samples are alike, or one would answer for another. */
function body(samples: number): string {
  const cases = [1, 2, 3].map((number) => ({ input: String(number), output: String(number) }));
  return JSON.stringify({
    tasks: { echo: { test_cases: cases } },
    samples: Array.from({ length: samples }, () => ({
      task: "echo",
      completion: `\`\`\`python\nprint(input())  # ${programs++}\n\`\`\``,
    })),
    options: { detail: "rewards" },
  });
}

async function send(stack: LocalStackProcess, samples: number): Promise<void> {
  const headers = { authorization: `Bearer ${stack.apiKey}`, "content-type": "application/json" };
  const response = await fetch(`${stack.url}/v1/rewards`, { method: "POST", headers, body: body(samples) });
  const { rewards } = (await response.json()) as { rewards?: unknown[] };
  if (rewards?.length !== samples || rewards.some((reward) => reward !== 1)) {
    throw new Error(`a batch of right programs was answered with ${response.status}, and not with ones`);
  }
}

async function timeOf(stack: LocalStackProcess, { batches, samples }: Load): Promise<number> {
  const startedAtMs = performance.now();
  await Promise.all(Array.from({ length: batches }, () => send(stack, samples)));
  return performance.now() - startedAtMs;
}

function median(times: readonly number[] = []): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? Number.NaN;
}

const nameOf = ({ batches, samples }: Load) => `${batches} × ${samples}`;

async function measure(): Promise<Map<Load, number[]>> {
  const stack = await startLocalStackProcess(["--slots", "1", "--no-cron"]);
  const times = new Map<Load, number[]>(loads.map((load) => [load, []]));
  try {
    await send(stack, 10); // the worker is made, and everything loaded
    for (let round = 0; round < rounds; round += 1)
      for (const load of loads) times.get(load)?.push(await timeOf(stack, load));
  } finally {
    await stack.stop();
  }
  return times;
}

const times = await measure();
const medians = loads.map((load) => ({ load: nameOf(load), medianMs: Math.round(median(times.get(load))) }));
const ratios = bounds.map(({ small, large, most }) => {
  const ratio = Number((median(times.get(small)) / median(times.get(large))).toPrecision(3));
  return { what: `${nameOf(small)} to ${nameOf(large)}`, ratio, most, isHeld: ratio <= most };
});
console.table(medians);
console.table(ratios);
if (json) writeFileSync(json, `${JSON.stringify({ medians, ratios }, null, 2)}\n`);
if (ratios.some(({ isHeld }) => !isHeld)) process.exitCode = 1;
