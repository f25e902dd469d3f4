/**
 * The description of the interface, made from the schemas that requests are validated with.
 */
import { createRoute, OpenAPIHono } from "@hono/zod-openapi";
import {
  answerExample,
  Liveness,
  ProblemAnswer,
  Readiness,
  RewardsAnswer,
  StreamLine,
} from "./answer-schemas.ts";
import { type ProblemCode, problemStatus } from "./problem.ts";
import type { RequestSchemas } from "./request-schemas.ts";

const security = [{ bearer: [] }];
const requestIdHeader = {
  "X-Request-Id": { description: "The caller's id, or a new one.", schema: { type: "string" as const } },
};

/** The OpenAPI 3.1 document, as a value that can be sent as JSON. */
export function describeInterface(schemas: RequestSchemas): object {
  const registry = new OpenAPIHono();
  registry.openAPIRegistry.registerComponent("securitySchemes", "bearer", { type: "http", scheme: "bearer" });
  for (const route of [describeRewards(schemas), describeLiveness(), describeReadiness()]) {
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
      body: { required: true, content: { "application/json": { schema: schemas.RewardsRequest } } },
    },
    responses: {
      200: {
        description: "Rewards; or a stream of lines, if the request accepts `application/x-ndjson`.",
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
        "cancelled",
        "too_large",
        "unsupported_media_type",
        "invalid_request",
        "internal",
        "no_capacity",
        "sandbox_unavailable",
        "store_unavailable",
        "isolation_failed",
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

/** One response per status; its description lists the codes that it stands for. */
function describeProblems(codes: readonly ProblemCode[]) {
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of codes) {
    const status = problemStatus(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  const responses = [...byStatus].map(([status, listed]) => {
    const description = listed.map((code) => `\`${code}\``).join(", ");
    return [
      status,
      { description, content: { "application/problem+json": { schema: ProblemAnswer } } },
    ] as const;
  });
  return Object.fromEntries(responses);
}
