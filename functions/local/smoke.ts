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
import { Fault } from "../rewards/faults.ts";
import { listenForEnd } from "./ending.ts";
import { readEndpoint, readEnvironment } from "./environment.ts";
import { endpointAt, listServices, requireReachable } from "./reach.ts";
import { endWithError, requireLinux } from "./refusal.ts";
import {
  callEndpoint,
  type EndpointAddress,
  type GradedBatch,
  RefusalError,
  requestRewards,
} from "./rewards-client.ts";
import { smokeCompletions, smokeRewards, smokeTask } from "./smoke-programs.ts";
import { startLocalStack } from "./stack.ts";

const usage = `npm run smoke [-- --e2b]

  --e2b  runs the programs in sandboxes of E2B (with E2B_API_KEY), not of this machine

  CODE_REWARDS_URL, CODE_REWARDS_API_KEY  an endpoint to use instead of one that is started here`;

interface Endpoint extends EndpointAddress {
  /** Ends what was started here; throws a `Fault` when a sandbox is left. */
  close(): Promise<void>;
}

function say(line: string): void {
  console.error(line);
}

interface Choice {
  readonly useE2b: boolean;
  /** An endpoint that is there already. */
  readonly given: EndpointAddress | null;
}

function readChoice(): Choice {
  const { values } = parseArgs({ options: { e2b: { type: "boolean", default: false } } });
  return { useE2b: values.e2b, given: readEndpoint(process.env) };
}

async function openEndpoint({ useE2b, given }: Choice, signal: AbortSignal): Promise<Endpoint> {
  if (given !== null) {
    say(`using the endpoint at ${given.url}`);
    await requireReachable([endpointAt(given.url)], signal);
    return { ...given, signal, close: async () => {} };
  }
  if (!useE2b) requireLinux();
  const options = readEnvironment(process.env, { useE2b });
  await requireReachable(listServices(options), signal);
  const where = useE2b ? "with E2B's sandboxes" : "with sandboxes on this machine";
  say(`starting an endpoint ${where}; a worker proves its isolation first`);
  const { url, apiKey, close } = await startLocalStack({ port: 0, ...options, signal });
  say("a worker is ready");
  return { url, apiKey, signal, close };
}

/** Registers the run that this command's batches count for, so that its workers can be ended with it. */
async function startRun(endpoint: Endpoint, runId: string): Promise<void> {
  await callEndpoint(endpoint, "PUT", `/v1/runs/${runId}`, { name: "smoke", workers: 1 });
}

/** Finishes the run, also when this command was told to end; returns what E2B's list still shows of it. */
async function finishRun({ url, apiKey }: Endpoint, runId: string): Promise<readonly string[]> {
  try {
    const answer = await callEndpoint({ url, apiKey }, "DELETE", `/v1/runs/${runId}`);
    return (answer as { remaining_sandboxes: string[] }).remaining_sandboxes;
  } catch (error) {
    if (error instanceof RefusalError && error.status === 404) return []; // it was never registered
    throw error;
  }
}

interface Graded extends GradedBatch {
  /** Why a sample has no reward, by its index. */
  readonly reasons: ReadonlyMap<number, string>;
}

async function grade(endpoint: Endpoint, runId: string): Promise<Graded> {
  const names = Object.keys(smokeCompletions);
  const samples = Object.values(smokeCompletions).map((completion) => ({ task: "records", completion }));
  const batch = { run_id: runId, tasks: { records: smokeTask }, samples };
  const reasons = new Map<number, string>();
  const answer = await requestRewards(endpoint, batch, (result) => {
    const { index, reward, status, reason, fault } = result;
    if (fault) reasons.set(index, `${fault.code}: ${fault.detail}`);
    const verdicts = result.verdicts?.map(({ verdict }) => verdict).join(", ");
    say(`  ${names[index]}: ${reward} (${verdicts ?? reason ?? reasons.get(index) ?? status})`);
  });
  return { ...answer, reasons };
}

function nameRewards({ rewards }: GradedBatch): Record<string, number | null> {
  return Object.fromEntries(Object.keys(smokeCompletions).map((name, i) => [name, rewards[i] ?? null]));
}

/** What is wrong with a batch's answer; empty when nothing is. */
function findFaults({ rewards, reasons }: Graded): string[] {
  return Object.entries(smokeRewards).flatMap(([name, expected], i) => {
    const reward = rewards[i] ?? null;
    if (reward === expected) return [];
    const why = reward === null ? ` (${reasons.get(i) ?? "without a reason"})` : "";
    return [`${name} got ${reward}${why}, not ${expected}`];
  });
}

async function gradeTwice(endpoint: Endpoint, runId: string): Promise<string[]> {
  await startRun(endpoint, runId);
  say("grading five programs");
  const first = await grade(endpoint, runId);
  say("grading them again, on the same worker");
  const second = await grade(endpoint, runId);
  const problems = [...findFaults(first), ...findFaults(second)];
  if (second.usage.workers_created > 0) problems.push("the second batch had to create workers");
  const seconds = first.usage.worker_seconds + second.usage.worker_seconds;
  say(`worker seconds: ${seconds.toFixed(2)}; retries: ${first.usage.retries + second.usage.retries}`);
  console.log(JSON.stringify(nameRewards(first)));
  return problems;
}

async function smoke(choice: Choice, signal: AbortSignal): Promise<string[]> {
  const endpoint = await openEndpoint(choice, signal);
  const runId = `smoke-${randomUUID()}`;
  try {
    return await gradeTwice(endpoint, runId);
  } finally {
    await leaveNothing(endpoint, runId);
  }
}

/** Ends the run, then what was started here, whatever became of the run. */
async function leaveNothing(endpoint: Endpoint, runId: string): Promise<void> {
  const left = await finishRun(endpoint, runId).finally(endpoint.close);
  if (left.length > 0) throw new Fault("sandbox_unavailable", `sandboxes still running: ${left.join(", ")}`);
  say("no sandbox is left running");
}

const choice = readArguments(readChoice, usage);
const ending = listenForEnd();
try {
  const problems = await smoke(choice, ending.signal);
  for (const problem of problems) say(`failed: ${problem}`);
  process.exit(problems.length > 0 ? 1 : 0);
} catch (error) {
  if (ending.signal.aborted && error === ending.signal.reason) process.exit(ending.exitCode());
  endWithError(error);
}
