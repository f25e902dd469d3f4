/**
 * `/v1/runs`: a trainer's job, from register to finish.
 */
import type { Context } from "hono";
import type { RunRow } from "../pool/runs/run-row.ts";
import type { RunService } from "../pool/runs/run-service.ts";
import { type RunWish, runIdPattern, runProblems } from "../pool/runs/run-wish.ts";
import type { Clock } from "../rewards/ports.ts";
import { readJsonBody, readOptionalJsonBody } from "./body.ts";
import { type ItemError, Problem } from "./problem.ts";
import { refuseRequest } from "./refused-request.ts";
import type { RunSchemas } from "./run-schemas.ts";
import {
  type EncodingOptions,
  encodeFinish,
  encodeHeartbeat,
  encodeRegistration,
  encodeRun,
} from "./runs-answer.ts";
import { createProblemList, readAgainst } from "./schema-reading.ts";

export interface RunsRouteDeps {
  readonly runs: RunService;
  readonly schemas: RunSchemas;
  readonly slots: number;
  readonly clock: Pick<Clock, "nowMs">;
  readonly costUsd: EncodingOptions["costUsd"];
}

/** The handlers of the runs' resources. */
export function createRunHandlers(deps: RunsRouteDeps) {
  const { runs } = deps;
  const options = (): EncodingOptions => ({ nowMs: deps.clock.nowMs(), costUsd: deps.costUsd });
  return {
    async register(c: Context): Promise<Response> {
      const runId = c.req.param("id") ?? "";
      const { value } = await readJsonBody(c.req.raw);
      const start = await runs.start(runId, readWish(deps, runId, value));
      if (start.kind === "run_finished") throw runFinished(runId);
      return c.json(encodeRegistration(start), start.isNew ? 201 : 200);
    },
    async beat(c: Context): Promise<Response> {
      const runId = knownForm(c.req.param("id") ?? "");
      const value = await readOptionalJsonBody(c.req.raw);
      if (value !== undefined) checkHeartbeat(deps.schemas, value);
      const heartbeat = await runs.beat(runId);
      if (heartbeat.kind === "run_not_found") throw runNotFound(runId);
      if (heartbeat.kind === "run_finished") throw runFinished(runId);
      return c.json(encodeHeartbeat(heartbeat.run));
    },
    async list(c: Context): Promise<Response> {
      const all = await runs.list();
      return c.json({ runs: all.map((run) => encodeRun(run, options())) });
    },
    async read(c: Context): Promise<Response> {
      const runId = knownForm(c.req.param("id") ?? "");
      const run: RunRow | null = await runs.read(runId);
      if (run === null) throw runNotFound(runId);
      return c.json(encodeRun(run, options()));
    },
    async finish(c: Context): Promise<Response> {
      const runId = knownForm(c.req.param("id") ?? "");
      const finish = await runs.finish(runId);
      if (finish.kind === "run_not_found") throw runNotFound(runId);
      return c.json(encodeFinish(finish.run, finish.remainingSandboxes, options()));
    },
  };
}

export function runNotFound(runId: string): Problem {
  const name = runIdPattern.test(runId) ? ` '${runId}'` : " of that id";
  return new Problem("run_not_found", `There is no run${name}. Register it with PUT /v1/runs/{id} first.`);
}

export function runFinished(runId: string): Problem {
  const detail = `The run '${runId}' is finished, for good. Register another one under a new id.`;
  return new Problem("run_finished", detail);
}

/** An id that no run can have is in no row's key. */
function knownForm(runId: string): string {
  if (!runIdPattern.test(runId)) throw runNotFound(runId);
  return runId;
}

/** Throws with every problem found. */
function readWish({ schemas, slots }: RunsRouteDeps, runId: string, value: unknown): RunWish {
  const problems = createProblemList();
  const body = readAgainst(schemas.RunRequest, value, [], problems) as
    | { readonly name?: string; readonly workers: number; readonly metadata: unknown }
    | undefined;
  const errors: ItemError[] = [...problems.items];
  if (errors.length > 0 || body === undefined) {
    if (!runIdPattern.test(runId)) errors.push(...idProblems(runId));
    throw refuseRequest(errors);
  }
  const { name = runId, workers } = body;
  const metadata = body.metadata instanceof Map ? Object.fromEntries(body.metadata) : {};
  const wish = { name, workers, metadata };
  const found = runProblems(runId, wish, slots);
  if (found.length > 0) throw refuseRequest(found);
  return wish;
}

function idProblems(runId: string): ItemError[] {
  return runProblems(runId, { name: "", workers: 1, metadata: {} }, 1);
}

function checkHeartbeat({ HeartbeatRequest }: RunSchemas, value: unknown): void {
  const problems = createProblemList();
  readAgainst(HeartbeatRequest, value, [], problems);
  if (problems.items.length > 0) throw refuseRequest(problems.items);
}
