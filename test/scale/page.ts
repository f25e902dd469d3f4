/** The page's tables: each stands between two marks of the page, whose prose is nobody's but its author's. */
import { workersCostUsd } from "../../functions/pool/cost.ts";
import type { RangeMs } from "../simulation/cloud.ts";
import * as assumed from "./assumptions.ts";
import { workerCounts } from "./grid.ts";
import { meanProgramCpuMs } from "./programs.ts";
import { cheapestWorkers, chooseWorkers, slowestProgramMs, utilisation } from "./rule.ts";
import type { PointReport, SweepReport } from "./sweep.ts";

/** 8 generations for each of 64 prompts, in one batch. */
const exampleSamples = 512;
const exampleWaitS = 12;
/** Four GPUs at $2.50. */
const trainerUsdPerHour = 10;
const workerUsdPerHour = workersCostUsd(3_600);
const thinkS = assumed.thinkMs / 1_000;

/** The page with its tables made anew; throws when it has no place for one of them. */
export function fillPage(page: string, report: SweepReport): string {
  const tables = {
    assumptions: describeAssumptions(),
    "batch time": drawAlone(report, (at) => `${seconds(at.batchMsP50)} (${seconds(at.batchMsP95)})`),
    throughput: drawAlone(report, (at) => rate(at.programsPerSecond)),
    cost: drawAlone(report, (at) => `${dollars(at.per1000.totalUsd)} (${percent(at.idleShare)})`),
    crowds: drawCrowds(report),
    services: drawServices(report),
    rule: drawRule(report),
    example: drawExample(report),
    "example words": describeExample(),
  };
  return Object.entries(tables).reduce((filled, [name, text]) => fill(filled, name, text), page);
}

function fill(page: string, name: string, text: string): string {
  const [open, close] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->`];
  const from = page.indexOf(open);
  const to = page.indexOf(close);
  if (from < 0 || to < from) throw new Error(`the page has no place for «${name}»: ${open}${close}`);
  return `${page.slice(0, from + open.length)}\n${text}\n\n${page.slice(to)}`;
}

function describeAssumptions(): string {
  const { latencies, programMix, handlerCpuMs } = assumed;
  const { quick, slow } = programMix;
  const roundTrip = ([leastMs, mostMs]: RangeMs) => `${2 * leastMs}–${2 * mostMs} ms`;
  const between = ([leastMs, mostMs]: RangeMs) => `${leastMs / 1_000}–${mostMs / 1_000} s`;
  return draw(
    ["assumed", ""],
    [
      [
        "sandbox",
        `${between(latencies.creationMs)}, and ${between(latencies.readinessMs)} until its supervisor is ready`,
      ],
      [
        "round trip to a worker; to the table",
        `${roundTrip(latencies.workerWayMs)}; ${roundTrip(latencies.tableWayMs)}`,
      ],
      ["a worker", `${assumed.slotsPerWorker} vCPUs, a test case on each`],
      ["a test case", `${assumed.caseOverheadCpuMs} ms of CPU besides its program`],
      [
        "a handler",
        `one vCPU; ${handlerCpuMs.perSample} ms for a sample, ${handlerCpuMs.perLine} ms for a line from a worker`,
      ],
      [
        "a program",
        `${assumed.casesPerProgram} test cases. ${percent(1 - programMix.syntaxErrors - programMix.endless - slow.share)} take ${quick.leastMs + quick.meanBeyondMs} ms of CPU a case on average, ` +
          `${percent(slow.share)} ${between(slow.caseMs)}, ${percent(programMix.endless)} run into the limit of ${assumed.timeLimitMs / 1_000} s, ` +
          `${percent(programMix.syntaxErrors)} are syntax errors: ${(meanProgramCpuMs() / 1_000).toFixed(3)} s a program`,
      ],
      ["between two steps", `${thinkS} s, in which nothing is graded and workers are paid`],
    ],
  );
}

/** Workers down, samples across. */
function drawAlone({ alone }: SweepReport, cell: (at: PointReport) => string): string {
  const sampleCounts = [...new Set(alone.map(({ samples }) => samples))];
  const find = (workers: number, samples: number) =>
    alone.find((point) => point.workers === workers && point.samples === samples);
  return draw(
    ["workers", ...sampleCounts.map((samples) => `${count(samples)} samples`)],
    workerCounts.map((workers) => [
      `${workers}`,
      ...sampleCounts.map((samples) => {
        const at = find(workers, samples);
        return at === undefined ? "too long" : cell(at);
      }),
    ]),
  );
}

function drawCrowds({ crowds }: SweepReport): string {
  return draw(
    ["workers", "at once", "programs/s", "waits for a worker", "batch", "idle", "$ per 1,000"],
    crowds.map((at) => [
      `${at.workers}`,
      describeLoad(at),
      rate(at.programsPerSecond),
      `${seconds(at.queueMsP50)} (${seconds(at.queueMsP95)})`,
      `${seconds(at.batchMsP50)} (${seconds(at.batchMsP95)})`,
      percent(at.idleShare),
      dollars(at.per1000.totalUsd),
    ]),
  );
}

/** Points that show what grows with what. */
function drawServices({ alone, crowds }: SweepReport): string {
  const shown = [...alone.filter(({ samples }) => samples >= 512), ...crowds].filter(
    ({ workers, batches }) => (batches === 1 && [4, 16, 100].includes(workers)) || batches >= 10,
  );
  return draw(
    [
      "workers",
      "at once",
      "table requests a batch",
      "read units/s at most",
      "Lambda ms a batch",
      "requests to E2B a program",
      "worker seconds per 1,000",
      "of the cost: workers, Lambda, table",
    ],
    [...new Map(shown.map((at) => [`${at.workers} ${describeLoad(at)}`, at])).values()].map((at) => [
      `${at.workers}`,
      describeLoad(at),
      at.tableRequestsPerBatch.toFixed(0),
      at.mostReadUnitsPerS.toFixed(0),
      count(at.lambdaMsPerBatch),
      at.requestsPerProgram.toFixed(2),
      at.workerSecondsPer1000.toFixed(0),
      [at.per1000.workersUsd, at.per1000.lambdaUsd, at.per1000.tableUsd]
        .map((usd) => percent(usd / at.per1000.totalUsd))
        .join(", "),
    ]),
  );
}

function drawRule({ alone, crowds }: SweepReport): string {
  const groups: [string, readonly PointReport[]][] = [
    ["one batch of up to 64", alone.filter(({ samples }) => samples < 512)],
    ["one batch of 512 and more", alone.filter(({ samples }) => samples >= 512)],
    ["several batches at once", crowds.filter(({ batches }) => batches > 1)],
  ];
  return draw(
    ["", "points", "half of them within", "all within", "the worst"],
    groups.flatMap(([name, points]) => {
      const sorted = points.toSorted((one, other) => Math.abs(one.error) - Math.abs(other.error));
      const worst = sorted.at(-1);
      if (worst === undefined) return [];
      const errorAt = (part: number) =>
        percent(Math.abs(sorted[Math.ceil(part * sorted.length) - 1]?.error ?? 0));
      const word = `${worst.workers} ${worst.workers === 1 ? "worker" : "workers"}, ${describeLoad(worst)}: ${seconds(worst.predictedStepMs)} said, ${seconds(worst.stepMsMean)} simulated`;
      return [[name, `${points.length}`, errorAt(0.5), errorAt(1), word]];
    }),
  );
}

function drawExample({ alone }: SweepReport): string {
  const points = alone.filter(({ samples }) => samples === exampleSamples);
  return draw(
    [
      "workers",
      "the step waits",
      "said by the rule",
      "workers, $ an hour",
      "waiting GPUs, $ an hour",
      "together",
      "$ per 1,000 programs",
    ],
    points.map((at) => {
      const workersUsd = at.workers * workerUsdPerHour;
      const waitingUsd = (trainerUsdPerHour * at.stepMsMean) / (at.stepMsMean + assumed.thinkMs);
      return [
        `${at.workers}`,
        `${seconds(at.batchMsP50)} (${seconds(at.batchMsP95)})`,
        seconds(at.predictedStepMs),
        dollars(workersUsd),
        dollars(waitingUsd),
        dollars(workersUsd + waitingUsd),
        dollars(at.per1000.totalUsd),
      ];
    }),
  );
}

function describeExample(): string {
  const cpuSecondsPerProgram = meanProgramCpuMs() / 1_000;
  const slowestS = slowestProgramMs / 1_000;
  const wanted = chooseWorkers({
    programs: exampleSamples,
    cpuSecondsPerProgram,
    waitS: exampleWaitS,
    slowestS,
  });
  const cpuSeconds = exampleSamples * cpuSecondsPerProgram;
  const cheapest = cheapestWorkers({ cpuSeconds, thinkS, trainerUsdPerHour, workerUsdPerHour });
  const program = cpuSecondsPerProgram.toFixed(3);
  return [
    "```text",
    `workers = ${exampleSamples} × ${program} s / (${assumed.slotsPerWorker} × ${utilisation} × (${exampleWaitS} s − ${slowestS} s)) = ${wanted}`,
    `cheapest = √(${dollars(trainerUsdPerHour)} × ${exampleSamples} × ${program} s / (${assumed.slotsPerWorker} × ${dollars(workerUsdPerHour)} × ${thinkS} s)) = ${cheapest.toFixed(0)}`,
    "```",
  ].join("\n");
}

function describeLoad({ batches, samples }: PointReport): string {
  return `${batches} × ${count(samples)}`;
}

function draw(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(ms < 9_950 ? 1 : 0)} s`;
}

function rate(perSecond: number): string {
  return perSecond.toFixed(perSecond < 9.95 ? 1 : 0);
}

function dollars(usd: number): string {
  return `$${usd < 0.1 ? usd.toPrecision(2) : usd.toFixed(2)}`;
}

function percent(part: number): string {
  return part > 0.995 && part < 1 ? "> 99 %" : `${Math.round(100 * part)} %`;
}

function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
