/**
 * `npm run smoke`: five fixed programs through a real endpoint, twice.
 *
 * Starts an embedded stack of its own (with `--e2b` and `E2B_API_KEY` on E2B's sandboxes), or uses the endpoint at
 * `CODE_REWARDS_URL` with `CODE_REWARDS_API_KEY`. Prints the rewards as one line of JSON; says on standard error what
 * it is doing. Fails when a reward is not what it must be, when healthy workers were not used again, or when E2B's own
 * list still shows a sandbox in the end.
 */
import { randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import { readArguments } from "../command-arguments.ts";
import { readEnvironment } from "./environment.ts";
import { refuseToStart, requireLinux } from "./refusal.ts";
import { callEndpoint, type GradedBatch, requestRewards } from "./rewards-client.ts";
import { smokeCompletions, smokeRewards, smokeTask } from "./smoke-programs.ts";
import { startLocalStack } from "./stack.ts";

const usage = `npm run smoke [-- --e2b]

  --e2b  runs the programs in sandboxes of E2B (with E2B_API_KEY), not of this machine

  CODE_REWARDS_URL, CODE_REWARDS_API_KEY  an endpoint to use instead of one that is started here`;

interface Endpoint {
  readonly url: string;
  readonly apiKey: string;
  /** Ends what was started here, and returns the sandboxes that are still there. */
  close(): Promise<readonly string[]>;
}

function say(line: string): void {
  console.error(line);
}

interface Choice {
  readonly useE2b: boolean;
  /** An endpoint that is there already. */
  readonly given: { readonly url: string; readonly apiKey: string } | null;
}

function readChoice(): Choice {
  const { values } = parseArgs({ options: { e2b: { type: "boolean", default: false } } });
  const { CODE_REWARDS_URL: url, CODE_REWARDS_API_KEY: apiKey } = process.env;
  if (url === undefined) return { useE2b: values.e2b, given: null };
  if (apiKey === undefined) throw new Error("CODE_REWARDS_URL is set: set CODE_REWARDS_API_KEY as well");
  return { useE2b: values.e2b, given: { url, apiKey } };
}

async function openEndpoint({ useE2b, given }: Choice): Promise<Endpoint> {
  if (given !== null) {
    say(`using the endpoint at ${given.url}`);
    return { ...given, close: async () => [] };
  }
  if (!useE2b) requireLinux();
  const where = useE2b ? "with E2B's sandboxes" : "with sandboxes on this machine";
  say(`starting an endpoint ${where}; a worker proves its isolation first`);
  const stack = await startLocalStack({ port: 0, ...readEnvironment(process.env, { useE2b }) });
  say("a worker is ready");
  return {
    url: stack.url,
    apiKey: stack.apiKey,
    async close() {
      const left = await stack.emptyPool();
      await stack.close();
      return left;
    },
  };
}

/** Registers the run that this command's batches count for, so that its workers can be ended with it. */
async function startRun(endpoint: Endpoint): Promise<string> {
  const runId = `smoke-${randomUUID()}`;
  await callEndpoint(endpoint, "PUT", `/v1/runs/${runId}`, { name: "smoke", workers: 1 });
  return runId;
}

/** Finishes the run; returns what E2B's list still shows of it. */
async function finishRun(endpoint: Endpoint, runId: string): Promise<readonly string[]> {
  const answer = await callEndpoint(endpoint, "DELETE", `/v1/runs/${runId}`);
  return (answer as { remaining_sandboxes: string[] }).remaining_sandboxes;
}

function grade(endpoint: Endpoint, runId: string): Promise<GradedBatch> {
  const names = Object.keys(smokeCompletions);
  const samples = Object.values(smokeCompletions).map((completion) => ({ task: "records", completion }));
  const batch = { run_id: runId, tasks: { records: smokeTask }, samples };
  return requestRewards(endpoint, batch, (result) => {
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

async function smoke(choice: Choice): Promise<string[]> {
  const endpoint = await openEndpoint(choice);
  const problems: string[] = [];
  let runId: string | undefined;
  try {
    runId = await startRun(endpoint);
    say("grading five programs");
    const first = await grade(endpoint, runId);
    say("grading them again, on the same worker");
    const second = await grade(endpoint, runId);
    problems.push(...findFaults(first), ...findFaults(second));
    if (second.usage.workers_created > 0) problems.push("the second batch had to create workers");
    const seconds = first.usage.worker_seconds + second.usage.worker_seconds;
    say(`worker seconds: ${seconds.toFixed(2)}; retries: ${first.usage.retries + second.usage.retries}`);
    console.log(JSON.stringify(nameRewards(first)));
  } finally {
    const left = runId === undefined ? [] : [...(await finishRun(endpoint, runId))];
    left.push(...(await endpoint.close()));
    if (left.length > 0) problems.push(`sandboxes still running: ${left.join(", ")}`);
    else say("no sandbox is left running");
  }
  return problems;
}

const choice = readArguments(readChoice, usage);
try {
  const problems = await smoke(choice);
  for (const problem of problems) say(`failed: ${problem}`);
  process.exit(problems.length > 0 ? 1 : 0);
} catch (error) {
  refuseToStart(error);
}
