/** What answers in the place of a service that can't be put together: it lives, and says what is wrong with it. */
import { Hono } from "hono";
import type { Fault } from "../rewards/faults.ts";
import { answerLiveness } from "./health-routes.ts";
import { respondWithProblem, toProblem } from "./problem.ts";
import { assignRequestId, type RequestVariables } from "./request-id.ts";

export function createMisconfiguredApp(fault: Fault): Hono<{ Variables: RequestVariables }> {
  const app = new Hono<{ Variables: RequestVariables }>();
  app.use(assignRequestId());
  app.get("/healthz", answerLiveness);
  // Open to all: without a configuration no key is valid, and what is told names variables and no values.
  app.get("/readyz", (c) => c.json(describeReadiness(fault), 503));
  app.all("*", (c) => respondWithProblem(toProblem(fault), c.get("requestId")));
  return app;
}

/** Nothing could be looked at. */
function describeReadiness({ code, message }: Fault) {
  const checks = { configuration: `${code}: ${message}`, table: "unknown", e2b: "unknown", pool: null };
  return { status: "unavailable", checks };
}
