/**
 * `npm run smoke`: five fixed programs through a real endpoint, twice.
 *
 * Starts an embedded stack of its own, or uses the endpoint at `CODE_REWARDS_URL` with `CODE_REWARDS_API_KEY`. Prints
 * the rewards as one line of JSON; says on standard error what it is doing. Fails when a reward is not what it must be,
 * when healthy workers were not used again, or when something is left running.
 */
import { refuseToStart, requireLinux } from "./refusal.ts";
import { type GradedBatch, requestRewards } from "./rewards-client.ts";
import { smokeCompletions, smokeRewards, smokeTask } from "./smoke-programs.ts";
import { startLocalStack } from "./stack.ts";

interface Endpoint {
  readonly url: string;
  readonly apiKey: string;
  /** Ends what was started for this run, and returns the processes that are still there. */
  close(): Promise<readonly number[]>;
}

function say(line: string): void {
  console.error(line);
}

async function openEndpoint(): Promise<Endpoint> {
  const { CODE_REWARDS_URL: url, CODE_REWARDS_API_KEY: apiKey, CODE_REWARDS_PYTHON: python } = process.env;
  if (url !== undefined) {
    if (apiKey === undefined) throw new Error("CODE_REWARDS_URL is set: set CODE_REWARDS_API_KEY as well");
    say(`using the endpoint at ${url}`);
    return { url, apiKey, close: async () => [] };
  }
  requireLinux();
  say("starting an endpoint and its workers on this machine; each worker proves its isolation first");
  const stack = await startLocalStack({ port: 0, ...(python && { python }) });
  const pids = stack.workers.pids();
  say(`${pids.length} workers are ready`);
  return {
    url: stack.url,
    apiKey: stack.apiKey,
    async close() {
      await stack.close();
      return pids.filter(isAlive);
    },
  };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function grade(endpoint: Endpoint): Promise<GradedBatch> {
  const names = Object.keys(smokeCompletions);
  const samples = Object.values(smokeCompletions).map((completion) => ({ task: "records", completion }));
  return requestRewards(endpoint, { tasks: { records: smokeTask }, samples }, (result) => {
    const verdicts = result.verdicts?.map(({ verdict }) => verdict).join(", ");
    say(`  ${names[result.index]}: ${result.reward} (${verdicts ?? result.reason ?? result.status})`);
  });
}

function nameRewards({ rewards }: GradedBatch): Record<string, number | null> {
  return Object.fromEntries(Object.keys(smokeCompletions).map((name, i) => [name, rewards[i] ?? null]));
}

/** What is wrong with a batch's answer; empty when nothing is. */
function findFaults(batch: GradedBatch): string[] {
  const rewards = nameRewards(batch);
  return Object.entries(smokeRewards).flatMap(([name, expected]) =>
    rewards[name] === expected ? [] : [`${name} got ${rewards[name]}, not ${expected}`],
  );
}

async function smoke(): Promise<string[]> {
  const endpoint = await openEndpoint();
  const problems: string[] = [];
  try {
    say("grading five programs");
    const first = await grade(endpoint);
    say("grading them again, on the same workers");
    const second = await grade(endpoint);
    problems.push(...findFaults(first), ...findFaults(second));
    if (second.usage.workers_created > 0) problems.push("the second batch had to create workers");
    const seconds = first.usage.worker_seconds + second.usage.worker_seconds;
    say(`worker seconds: ${seconds.toFixed(2)}; retries: ${first.usage.retries + second.usage.retries}`);
    console.log(JSON.stringify(nameRewards(first)));
  } finally {
    const left = await endpoint.close();
    if (left.length > 0) problems.push(`still running: ${left.join(", ")}`);
    else say("nothing is left running");
  }
  return problems;
}

try {
  const problems = await smoke();
  for (const problem of problems) say(`failed: ${problem}`);
  process.exit(problems.length > 0 ? 1 : 0);
} catch (error) {
  refuseToStart(error);
}
