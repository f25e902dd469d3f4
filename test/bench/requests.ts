/** Requests that a batch costs, counted by proxies in front of the sandboxes and the table. */
import { startDynamoDb } from "../../functions/local/dynamodb.ts";
import { startE2bServer } from "../../functions/local/e2b/server.ts";
import type { SeenRequest } from "../faults/proxy/fault.ts";
import { startFaultProxy } from "../faults/proxy/fault-proxy.ts";
import type { Contestant } from "./contestant.ts";
import { createEndpointContestant } from "./endpoint-contestant.ts";
import type { Load } from "./loads.ts";
import { startLocalStackProcess } from "./local-stack-process.ts";
import { createRecipeContestant } from "./recipe/recipe-contestant.ts";

/** Of one batch, on average. */
export interface RequestCounts {
  readonly e2b: number;
  readonly tableReads: number;
  readonly tableWrites: number;
  readonly requestsPerProgram: number;
}

const apiKey = "e2b_local";
const isWrite = ({ operation }: SeenRequest) =>
  /PutItem|UpdateItem|DeleteItem|BatchWrite|TransactWrite/.test(operation ?? "");

/** Batches until the workers are there, and batches whose requests are counted. The recipe's are alike. */
const batchesOf = { endpoint: { unwatched: 4, counted: 10 }, recipe: { unwatched: 1, counted: 1 } };

/** What one warm batch of the load asks for with each contestant, on average. */
export async function countRequests(
  load: Load,
  workers: number,
): Promise<Record<Contestant["name"], RequestCounts>> {
  const e2b = await startE2bServer({ apiKey, plan: "pro", cpuCount: 1, log: () => {} });
  const table = await startDynamoDb({ port: 0 });
  const proxy = await startFaultProxy({
    control: e2b.apiUrl,
    sandbox: e2b.sandboxUrl,
    table: table.endpoint,
  });
  const closers = [proxy.close, table.close, e2b.close];
  try {
    const stack = await startLocalStackProcess(["--no-cron"], { E2B_API_KEY: apiKey, ...proxy.environment });
    closers.unshift(stack.stop);
    const endpoint = createEndpointContestant(stack);
    const recipe = await createRecipeContestant(
      { apiKey, apiUrl: proxy.controlUrl, sandboxUrl: proxy.sandboxUrl },
      workers,
    );
    closers.unshift(recipe.close);
    const count = async (contestant: Contestant): Promise<RequestCounts> => {
      const { unwatched, counted } = batchesOf[contestant.name];
      for (let round = 0; round < unwatched; round += 1) await contestant.grade(load.make(round));
      const before = proxy.requests.length;
      for (let round = 0; round < counted; round += 1) await contestant.grade(load.make(unwatched + round));
      const asked = proxy.requests.slice(before);
      const ofTable = asked.filter(({ path }) => path === "table");
      const writes = ofTable.filter(isWrite);
      return {
        e2b: (asked.length - ofTable.length) / counted,
        tableReads: (ofTable.length - writes.length) / counted,
        tableWrites: writes.length / counted,
        requestsPerProgram: asked.length / counted / load.expected.length,
      };
    };
    return { endpoint: await count(endpoint), recipe: await count(recipe) };
  } finally {
    for (const close of closers) await close();
  }
}
