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
  app.all("*", (c) => respondWithProblem(toProblem(fault), c.get("requestId")));
  return app;
}
