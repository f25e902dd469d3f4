/**
 * The HTTP interface, as a value: `app.request()` calls it, a server or a Lambda adapter serves it.
 */
import { swaggerUI } from "@hono/swagger-ui";
import { type Context, type Handler, Hono } from "hono";
import type { RunService } from "../pool/runs/run-service.ts";
import type { Clock } from "../rewards/ports.ts";
import { describeFailure } from "./answer-lines.ts";
import { type CallerVariables, requireApiKey, requireSignature } from "./authentication.ts";
import type { AdmitBatch } from "./batch-admission.ts";
import { type CancelBatch, handleCancellation } from "./batches-route.ts";
import { answerLiveness, handleReadiness, type ProbeReadiness } from "./health-routes.ts";
import type { LogEvent } from "./log.ts";
import { describeInterface } from "./openapi.ts";
import { Problem, respondWithProblem, toProblem } from "./problem.ts";
import { assignRequestId, type RequestVariables } from "./request-id.ts";
import { createRequestSchemas } from "./request-schemas.ts";
import { createRequestReader } from "./rewards-request.ts";
import { handleRewards } from "./rewards-route.ts";
import { createRunSchemas } from "./run-schemas.ts";
import { createRunHandlers } from "./runs-routes.ts";

export interface AppDeps {
  /** SHA-256 of each valid key; at least one, unless callers sign. */
  readonly apiKeyHashes: readonly Buffer[];
  /** Whether the platform in front identifies callers by their signatures, in the place of keys. */
  readonly signedCallers?: boolean;
  readonly admitBatch: AdmitBatch;
  readonly runs: RunService;
  readonly cancelBatch: CancelBatch;
  readonly probeReadiness: ProbeReadiness;
  readonly config: AppConfig;
  readonly clock: Clock;
  readonly log: LogEvent;
}

export interface AppConfig {
  /** What one test case may be given: a worker's memory less its reserve. */
  readonly maxMemoryMib: number;
  /** Workers that there can be at once; a run may wish for no more. */
  readonly slots: number;
  /** Dollars for so much worker time. */
  readonly costUsd: (workerSeconds: number) => number;
}

type App = Hono<{ Variables: RequestVariables & CallerVariables }>;

/**
 * Makes the app. Throws when its options can't work: no key, a key that isn't a hash, workers without memory, no
 * slots.
 *
 * @example
 * const app = createApp({ apiKeyHashes: [hashApiKey("secret")], admitBatch, runs, … });
 * const answer = await app.request("/healthz");
 */
export function createApp(deps: AppDeps): App {
  const app: App = new Hono();
  const schemas = createRequestSchemas(deps.config.maxMemoryMib);
  const readRequest = createRequestReader(schemas);
  const withKey = deps.signedCallers ? requireSignature() : requireApiKey(deps.apiKeyHashes);
  const runSchemas = createRunSchemas(deps.config.slots);
  const runs = createRunHandlers({ ...deps, ...deps.config, schemas: runSchemas });
  const description = JSON.stringify(describeInterface(schemas, runSchemas));

  app.use(assignRequestId());
  addResource(app, "/v1/rewards", { POST: [withKey, handleRewards({ ...deps, readRequest })] });
  addResource(app, "/v1/batches/:key", { DELETE: [withKey, handleCancellation(deps.cancelBatch)] });
  addResource(app, "/v1/runs", { GET: [withKey, runs.list] });
  addResource(app, "/v1/runs/:id", {
    GET: [withKey, runs.read],
    PUT: [withKey, runs.register],
    DELETE: [withKey, runs.finish],
  });
  addResource(app, "/v1/runs/:id/heartbeat", { POST: [withKey, runs.beat] });
  addResource(app, "/healthz", { GET: [answerLiveness] });
  addResource(app, "/readyz", { GET: [withKey, handleReadiness(deps.probeReadiness)] });
  addResource(app, "/openapi.json", {
    GET: [(c: Context) => c.body(description, 200, { "content-type": "application/json" })],
  });
  addResource(app, "/docs", { GET: [swaggerUI({ url: "/openapi.json", title: "code-rewards" })] });

  app.notFound((c) => {
    const detail = `There is nothing at '${c.req.path.slice(0, 200)}'. See /docs for what there is.`;
    return respondWithProblem(new Problem("not_found", detail), c.get("requestId"));
  });
  app.onError((error, c) => {
    const requestId = c.get("requestId");
    const problem = toProblem(error);
    if (problem !== error) deps.log(describeFailure(problem, requestId, error));
    return respondWithProblem(problem, requestId);
  });
  return app;
}

/** A path and its methods; any other method is refused with the list of those there are. */
function addResource(app: App, path: string, methods: Readonly<Record<string, readonly Handler[]>>): void {
  for (const [method, handlers] of Object.entries(methods)) app.on(method, [path], ...handlers);
  const allowed = Object.keys(methods).flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]));
  app.all(path, (c) => {
    const detail = `'${path}' has no method ${c.req.method}; it has ${allowed.join(", ")}.`;
    throw new Problem("method_not_allowed", detail, { headers: { allow: allowed.join(", ") } });
  });
}
