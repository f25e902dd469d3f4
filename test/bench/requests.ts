/** Requests that a batch costs, counted by proxies in front of the sandboxes and the table. */
import { startDynamoDb } from "../../functions/local/dynamodb.ts";
import { startE2bServer } from "../../functions/local/e2b/server.ts";
import { type SeenRequest, startWatchingProxy } from "../local/watching-proxy.ts";
import type { Contestant } from "./contestant.ts";
import { createEndpointContestant } from "./endpoint-contestant.ts";
import type { Load } from "./loads.ts";
import { startLocalStackProcess } from "./local-stack-process.ts";
import { createRecipeContestant } from "./recipe/recipe-contestant.ts";

export interface RequestCounts {
  readonly e2b: number;
  readonly tableReads: number;
  readonly tableWrites: number;
  readonly requestsPerProgram: number;
}

const apiKey = "e2b_local";
const isWrite = ({ headers }: SeenRequest) =>
  /PutItem|UpdateItem|DeleteItem|BatchWrite|TransactWrite/.test(String(headers["x-amz-target"]));

/** Each contestant grades one warm batch of the load, whose requests are counted. */
export async function countRequests(
  load: Load,
  workers: number,
): Promise<Record<Contestant["name"], RequestCounts>> {
  const e2b = await startE2bServer({ apiKey, plan: "pro", cpuCount: 1, log: () => {} });
  const table = await startDynamoDb({ port: 0 });
  const api = await startWatchingProxy(e2b.apiUrl);
  const sandboxes = await startWatchingProxy(e2b.sandboxUrl);
  const rows = await startWatchingProxy(table.endpoint);
  const closers = [rows.close, sandboxes.close, api.close, table.close, e2b.close];
  try {
    const stack = await startLocalStackProcess(["--no-cron"], {
      E2B_API_URL: api.url,
      E2B_SANDBOX_URL: sandboxes.url,
      DYNAMODB_ENDPOINT: rows.url,
    });
    closers.unshift(stack.stop);
    const endpoint = createEndpointContestant(stack);
    const recipe = await createRecipeContestant(
      { apiKey, apiUrl: api.url, sandboxUrl: sandboxes.url },
      workers,
    );
    closers.unshift(recipe.close);
    const count = async (contestant: Contestant): Promise<RequestCounts> => {
      await contestant.grade(load.make(0)); // now its workers are there
      const [e2bBefore, rowsBefore] = [api.seen.length + sandboxes.seen.length, rows.seen.length];
      await contestant.grade(load.make(1));
      const asked = rows.seen.slice(rowsBefore);
      const tableWrites = asked.filter(isWrite).length;
      const ofE2b = api.seen.length + sandboxes.seen.length - e2bBefore;
      const requestsPerProgram = (ofE2b + asked.length) / load.expected.length;
      return { e2b: ofE2b, tableReads: asked.length - tableWrites, tableWrites, requestsPerProgram };
    };
    return { endpoint: await count(endpoint), recipe: await count(recipe) };
  } finally {
    for (const close of closers) await close();
  }
}
