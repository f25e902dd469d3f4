/**
 * `npm run train:remote`: one training job on a GPU machine in AWS, as if it ran here.
 *
 * Starts a machine of the stage's launch template, prints what it says, and ends as the job ends. The machine ends
 * itself; when this command is interrupted, it goes on.
 */
import { setTimeout as wait } from "node:timers/promises";
import { EC2Client, EC2ServiceException } from "@aws-sdk/client-ec2";
import { S3Client } from "@aws-sdk/client-s3";
import { type Command, type Order, readCommand, UsageError, usage } from "./command-line.ts";
import { describeCost } from "./cost.ts";
import { followJob } from "./follow.ts";
import { type JobRecord, type JobStatus, type JobStore, openJobStore } from "./job-store.ts";
import { type Machines, openMachines, type TrainerTemplate } from "./machines.ts";
import { describeEnd, exitCode } from "./outcome.ts";

/** Why a job is not begun, in words for the user. */
class RefusedError extends Error {}

const appName = "code-rewards";
const defaultWorkers = 2;
/** From a record to its machine it takes seconds; after this, whoever wrote it has given up. */
const startingMs = 180_000;

interface Site {
  readonly machines: Machines;
  readonly template: TrainerTemplate;
  readonly store: JobStore;
}

// About Node's future: it would only hide what matters here.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= "true";

function say(line: string): void {
  console.error(line);
}

async function openSite(stage: string, name: string): Promise<Site> {
  const machines = openMachines(new EC2Client({}), appName, stage);
  const template = await machines.readTemplate();
  if (template === undefined) {
    throw new RefusedError(
      `the stage ${stage} has no trainer in this account and region: set trainer.enabled in stacks/settings.ts, and deploy`,
    );
  }
  const s3 = new S3Client(process.env.AWS_ENDPOINT_URL ? { forcePathStyle: true } : {});
  return { machines, template, store: openJobStore(s3, template.bucket, name) };
}

async function start(order: Order): Promise<number> {
  const site = await openSite(order.stage, order.name);
  await claim(site, order);
  for (const line of await estimate(site, order)) say(line);
  for (const [name, path] of Object.entries(order.files)) await site.store.putFile(name, path);
  const machine = await startMachine(site, order);
  say(
    `started ${machine}; what it says comes here, its files go to s3://${site.template.bucket}/jobs/${order.name}/`,
  );
  return order.detach ? 0 : follow(site, order, machine);
}

/** Makes sure that nobody else has the job's name, and takes it. */
async function claim({ machines, store }: Site, { name, trainArguments }: Order): Promise<void> {
  const [status, known, alive] = [
    await store.readStatus(),
    await store.readRecord(),
    await machines.findAlive(name),
  ];
  if (alive.length > 0)
    throw new RefusedError(`the job ${name} is running on ${alive.join(", ")}: follow it by --follow`);
  if (status?.state === "done") throw new RefusedError(`the job ${name} is done: choose another name`);
  if (known !== undefined && isBeingStarted(known.record, status)) {
    throw new RefusedError(`the job ${name} is being started by somebody else at this moment`);
  }
  const record: JobRecord = { arguments: trainArguments, ordered_at: new Date().toISOString() };
  if (!(await store.writeRecord(record, known?.version))) {
    throw new RefusedError(`the job ${name} is being started by somebody else at this moment`);
  }
  if (known !== undefined)
    say(`the job ${name} was begun before (${status?.state ?? "without a word"}): going on`);
}

function isBeingStarted({ ordered_at: orderedAt }: JobRecord, status: JobStatus | undefined): boolean {
  const orderedAtMs = Date.parse(orderedAt);
  const hasBegun = status !== undefined && Date.parse(status.at) >= orderedAtMs;
  return !hasBegun && Date.now() - orderedAtMs < startingMs;
}

async function estimate({ machines, template }: Site, { trainArguments }: Order): Promise<string[]> {
  const spotUsd = template.spot
    ? await machines.readSpotPrice(template.instanceType).catch(() => undefined)
    : undefined;
  return describeCost(template, readWorkers(trainArguments), spotUsd);
}

function readWorkers(words: readonly string[]): number {
  const at = words.findIndex((word) => /^--(sandbox-)?workers(=|$)/.test(word));
  const value = Number(words[at]?.split("=")[1] ?? words[at + 1]);
  return at >= 0 && value > 0 ? value : defaultWorkers;
}

/** A machine that AWS does not give leaves the name free for the next try. */
async function startMachine(
  { machines, template, store }: Site,
  { name, trainArguments }: Order,
): Promise<string> {
  try {
    return await machines.start(template, name);
  } catch (error) {
    const known = await store.readRecord();
    await store.writeRecord(
      { arguments: trainArguments, ordered_at: new Date(0).toISOString() },
      known?.version,
    );
    if (error instanceof EC2ServiceException)
      throw new RefusedError(`AWS gives no machine: ${error.name}: ${error.message}`);
    throw error;
  }
}

async function follow(
  { store, machines, template }: Site,
  { stage, name }: Pick<Order, "stage" | "name">,
  machine: string,
): Promise<number> {
  process.once("SIGINT", () => {
    say(
      `\n${machine} goes on. --follow shows it again, --end ends it: npm run train:remote -- --stage ${stage} --name ${name} …`,
    );
    process.exit(130);
  });
  const status = await followJob(
    { store, machines, sleep: (ms) => wait(ms), write: (bytes) => process.stdout.write(bytes) },
    machine,
  );
  say(describeEnd(name, status));
  say(`its files: aws s3 cp --recursive s3://${template.bucket}/jobs/${name}/output ${name}`);
  return exitCode(status);
}

async function followAgain({ stage, name }: Command): Promise<number> {
  const site = await openSite(stage, name);
  const [machine] = await site.machines.findAlive(name);
  const last = machine ?? (await site.store.readStatus())?.machine;
  if (last === undefined) throw new RefusedError(`there is no job ${name}`);
  return follow(site, { stage, name }, last);
}

async function end({ stage, name }: Command): Promise<number> {
  const { machines } = await openSite(stage, name);
  const alive = await machines.findAlive(name);
  if (alive.length > 0) await machines.end(alive);
  say(alive.length > 0 ? `ended ${alive.join(", ")}` : `the job ${name} has no machine`);
  return 0;
}

async function run(command: Command): Promise<number> {
  if (command.kind === "start") return start(command);
  return command.kind === "follow" ? followAgain(command) : end(command);
}

try {
  process.exitCode = await run(readCommand(process.argv.slice(2)));
} catch (error) {
  if (error instanceof UsageError) say(`${error.message}\n\n${usage}`);
  else if (error instanceof RefusedError) say(error.message);
  else say(error instanceof Error ? `${error.name}: ${error.message}` : String(error));
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
