/**
 * `npm run stop -- --stage X`: ends every run of a stage and kills every sandbox, now.
 *
 * Works on the table and on E2B themselves, with the caller's own credentials, so it needs neither the endpoint nor SST
 * to be in order. Fails when a sandbox remains.
 */
import { parseArgs } from "node:util";
import { createDynamoDbClient } from "./adapters/dynamodb-client.ts";
import { findTables } from "./adapters/dynamodb-discovery.ts";
import { holdEventLoop } from "./adapters/event-loop.ts";
import { systemClock } from "./adapters/system-clock.ts";
import { readArguments } from "./command-arguments.ts";
import { loadConfig } from "./config.ts";
import { identityKey } from "./pool/identity.ts";
import { type PoolStop, stopPool } from "./pool/sweep/stop-pool.ts";
import { Fault } from "./rewards/faults.ts";
import { wirePool } from "./wiring-pool.ts";

const usage = `npm run stop -- --stage NAME [--table NAME]

  --stage NAME  whose runs end and whose sandboxes are killed
  --table NAME  its table; default: the one that the stage's deployment made

  AWS credentials and region as for the aws command, and E2B_API_KEY as the stage has it
  (npx sst shell --stage NAME -- npm run stop -- --stage NAME takes the stage's own)`;

const appName = "code-rewards";
const withinMs = 90_000;

function readStage(): { readonly stage: string; readonly table: string | undefined } {
  const { values } = parseArgs({ options: { stage: { type: "string" }, table: { type: "string" } } });
  if (!values.stage) throw new Error("--stage is needed: which one is to be stopped?");
  return { stage: values.stage, table: values.table };
}

async function findTable(stage: string): Promise<string> {
  const endpoint = process.env.DYNAMODB_ENDPOINT;
  const prefix = `${appName}-${stage}-PoolTable-`;
  const [table, ...others] = await findTables(createDynamoDbClient(endpoint ? { endpoint } : {}), prefix);
  if (table === undefined) {
    const detail = `no table ${prefix}… in this account and region: is the stage's name right, and AWS_REGION?`;
    throw new Fault("misconfigured", detail);
  }
  if (others.length > 0) {
    throw new Fault(
      "misconfigured",
      `several tables of the stage: say --table ${[table, ...others].join(" or ")}`,
    );
  }
  return table;
}

async function stop(table: string): Promise<PoolStop | null> {
  const environment = { ...process.env, CODE_REWARDS_TABLE: table, CODE_REWARDS_AUTH: "aws_iam" };
  const { pool } = wirePool(loadConfig(environment), { clock: systemClock });
  if ((await pool.table.get(identityKey)) === undefined) return null;
  return stopPool(pool, { deadlineAtMs: systemClock.nowMs() + withinMs });
}

/** Says what was done; the process's exit code. */
function report(table: string, stopped: PoolStop | null): number {
  if (stopped === null) {
    console.log(`${table} has never had a sandbox: nothing to stop`);
    return 0;
  }
  const { endedRuns, killedSandboxes, remainingSandboxes, faults } = stopped;
  console.log(`runs ended: ${endedRuns.join(", ") || "none"}; sandboxes killed: ${killedSandboxes}`);
  for (const { action, code, detail } of faults) console.error(`${action}: ${code}: ${detail}`);
  if (remainingSandboxes === null) console.error("E2B did not tell what remains. Run this again.");
  else if (remainingSandboxes.length > 0) {
    console.error(`still there: ${remainingSandboxes.join(", ")}. Somebody sends batches? Run this again.`);
  } else console.log("no sandbox is left running");
  return remainingSandboxes?.length === 0 ? 0 : 1;
}

function explain(error: unknown): number {
  if (error instanceof Fault) console.error(`${error.code}: ${error.message}`);
  else console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  return error instanceof Fault ? 1 : 2;
}

const { stage, table: given } = readArguments(readStage, usage);
try {
  await holdEventLoop(async () => {
    const table = given ?? (await findTable(stage));
    process.exitCode = report(table, await stop(table));
  });
} catch (error) {
  process.exitCode = explain(error);
}
