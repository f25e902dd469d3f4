/**
 * The description of the interface, made from the schemas that requests are validated with.
 */
import { createRoute, OpenAPIHono } from "@hono/zod-openapi";
import { answerExample, Liveness, Readiness, RewardsAnswer, StreamLine } from "./answer-schemas.ts";
import { describeProblems } from "./openapi-problems.ts";
import { describeCancellation, describeRuns } from "./openapi-runs.ts";
import { requestExamples } from "./request-examples.ts";
import type { RequestSchemas } from "./request-schemas.ts";
import type { RunSchemas } from "./run-schemas.ts";

const security = [{ bearer: [] }];
const requestIdHeader = {
  "X-Request-Id": { description: "The caller's id, or a new one.", schema: { type: "string" as const } },
};

/** The OpenAPI 3.1 document, as a value that can be sent as JSON. */
export function describeInterface(schemas: RequestSchemas, runSchemas: RunSchemas): object {
  const registry = new OpenAPIHono();
  registry.openAPIRegistry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  const routes = [
    describeRewards(schemas),
    describeCancellation(),
    ...describeRuns(runSchemas),
    describeLiveness(),
    describeReadiness(),
  ];
  for (const route of routes) {
    registry.openAPIRegistry.registerPath(route);
  }
  return registry.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "code-rewards",
      version: "1",
      description: "Completions in, one reward in [0, 1] per completion out; null where the platform failed.",
    },
  });
}

function describeRewards(schemas: RequestSchemas) {
  return createRoute({
    method: "post",
    path: "/v1/rewards",
    summary: "Grade a batch of completions",
    description:
      "Takes the program out of each completion, runs it on its task's test cases, and answers with one reward per " +
      "sample, in order. The body may be gzip. Everything is validated before anything runs.",
    security,
    request: {
      headers: schemas.RewardsHeaders,
      body: {
        required: true,
        content: { "application/json": { schema: schemas.RewardsRequest, examples: requestExamples } },
      },
    },
    responses: {
      200: {
        description:
          "Rewards; or a stream of lines, if the request accepts `application/x-ndjson`. A stream that began before " +
          "its batch was refused has the refusal as its last line, of type `error`: any of those below may come so.",
        headers: requestIdHeader,
        content: {
          "application/json": { schema: RewardsAnswer, example: answerExample },
          "application/x-ndjson": { schema: StreamLine },
        },
      },
      ...describeProblems([
        "invalid_json",
        "unauthorized",
        "run_not_found",
        "in_progress",
        "run_finished",
        "cancelled",
        "too_large",
        "unsupported_media_type",
        "invalid_request",
        "idempotency_mismatch",
        "internal",
        "no_capacity",
        "sandbox_unavailable",
        "store_unavailable",
        "isolation_failed",
        "stopping",
        "misconfigured",
      ]),
    },
  });
}

function describeLiveness() {
  return createRoute({
    method: "get",
    path: "/healthz",
    summary: "Does the service live?",
    responses: { 200: { description: "It does.", content: { "application/json": { schema: Liveness } } } },
  });
}

function describeReadiness() {
  return createRoute({
    method: "get",
    path: "/readyz",
    summary: "Could the service grade a batch now?",
    security,
    responses: {
      200: { description: "It could.", content: { "application/json": { schema: Readiness } } },
      503: { description: "It could not.", content: { "application/json": { schema: Readiness } } },
      ...describeProblems(["unauthorized"]),
    },
  });
}
