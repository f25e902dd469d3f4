/**
 * `npm run bench [-- --json FILE]`: what grading costs on this machine.
 *
 * Starts the local stack as a process, sends batches of different right programs through the endpoint, and reads the
 * CPU time of its whole process tree. Exits with 1 when a program costs more than the bound. CPU seconds are what to
 * compare between machines; wall time says how noisy this one was.
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { requestRewards } from "../../functions/local/rewards-client.ts";
import { type LocalStackProcess, startLocalStackProcess } from "./local-stack-process.ts";
import { readTreeCpuSeconds } from "./process-tree.ts";
import { benchTask, writeProgram } from "./programs.ts";

const cpuSecondsPerProgramBound = 0.045;
const programsPerBatch = 64;
const batches = 5;

interface BatchCost {
  readonly wallSeconds: number;
  readonly cpuSecondsPerProgram: number;
}

let variant = 0;

async function measureBatch(stack: LocalStackProcess): Promise<BatchCost> {
  const samples = Array.from({ length: programsPerBatch }, () => {
    variant += 1;
    return { task: "totals", completion: writeProgram(variant) };
  });
  const cpuBefore = readTreeCpuSeconds(stack.pid);
  const startedAt = performance.now();
  const { rewards } = await requestRewards(stack, { tasks: { totals: benchTask }, samples });
  const wallSeconds = (performance.now() - startedAt) / 1000;
  const cpuSeconds = readTreeCpuSeconds(stack.pid) - cpuBefore;
  if (rewards.some((reward) => reward !== 1)) throw new Error(`a right program was not scored 1: ${rewards}`);
  return { wallSeconds, cpuSecondsPerProgram: cpuSeconds / programsPerBatch };
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const { values } = parseArgs({ options: { json: { type: "string" } } });
const stack = await startLocalStackProcess();
try {
  await measureBatch(stack); // warms caches and the compiler up; not counted
  const costs: BatchCost[] = [];
  for (let i = 0; i < batches; i++) costs.push(await measureBatch(stack));
  const report = {
    programs_per_batch: programsPerBatch,
    cases_per_program: benchTask.test_cases.length,
    batches,
    wall_seconds: median(costs.map((cost) => cost.wallSeconds)),
    programs_per_second: programsPerBatch / median(costs.map((cost) => cost.wallSeconds)),
    cpu_seconds_per_program: median(costs.map((cost) => cost.cpuSecondsPerProgram)),
    cpu_seconds_per_program_bound: cpuSecondsPerProgramBound,
  };
  console.table(report);
  if (values.json) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`);
  if (!(report.cpu_seconds_per_program <= cpuSecondsPerProgramBound)) {
    console.error("a program costs more CPU time than the bound");
    process.exitCode = 1;
  }
} finally {
  await stack.stop();
}
