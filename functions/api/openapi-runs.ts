/** The part of the interface's description that is about runs and batches. */
import { createRoute, z } from "@hono/zod-openapi";
import { describeProblems } from "./openapi-problems.ts";
import {
  BatchCancelled,
  RunAnswer,
  RunFinished,
  RunHeartbeat,
  RunList,
  RunRegistration,
  type RunSchemas,
} from "./run-schemas.ts";

const security = [{ bearer: [] }];
const RunParams = z.object({
  id: z.string().openapi({ description: "Chosen by the client.", example: "job-7" }),
});
const BatchParams = z.object({
  key: z.string().openapi({ description: "The batch's `Idempotency-Key`.", example: "job-7/step-12" }),
});

export function describeRuns(schemas: RunSchemas) {
  return [
    describeList(),
    describeRead(),
    describeRegistration(schemas),
    describeFinish(),
    describeHeartbeat(schemas),
  ];
}

export function describeCancellation() {
  return createRoute({
    method: "delete",
    path: "/v1/batches/{key}",
    summary: "Cancel a batch",
    description:
      "Answers once none of its programs runs; whoever waits for the batch gets `cancelled`. Again: the same.",
    security,
    request: { params: BatchParams },
    responses: {
      200: {
        description: "None of its programs runs.",
        content: { "application/json": { schema: BatchCancelled } },
      },
      ...describeProblems([
        "unauthorized",
        "not_found",
        "internal",
        "store_unavailable",
        "sandbox_unavailable",
      ]),
    },
  });
}

function describeList() {
  return createRoute({
    method: "get",
    path: "/v1/runs",
    summary: "List runs",
    description: "All runs that are remembered: those of the last seven days.",
    security,
    responses: {
      200: { description: "The runs.", content: { "application/json": { schema: RunList } } },
      ...describeProblems(["unauthorized", "store_unavailable"]),
    },
  });
}

function describeRead() {
  return createRoute({
    method: "get",
    path: "/v1/runs/{id}",
    summary: "Look at a run",
    security,
    request: { params: RunParams },
    responses: {
      200: { description: "The run.", content: { "application/json": { schema: RunAnswer } } },
      ...describeProblems(["unauthorized", "run_not_found", "store_unavailable"]),
    },
  });
}

function describeRegistration({ RunRequest }: RunSchemas) {
  const content = { "application/json": { schema: RunRegistration } };
  return createRoute({
    method: "put",
    path: "/v1/runs/{id}",
    summary: "Register a run",
    description:
      "Every rank and every retry may say it. Creates workers for up to 20 s; the rest is created within minutes.",
    security,
    request: {
      params: RunParams,
      body: { required: true, content: { "application/json": { schema: RunRequest } } },
    },
    responses: {
      200: { description: "It was registered before.", content },
      201: { description: "It is registered.", content },
      ...describeProblems([
        "invalid_json",
        "unauthorized",
        "run_finished",
        "too_large",
        "unsupported_media_type",
        "invalid_request",
        "store_unavailable",
      ]),
    },
  });
}

function describeFinish() {
  return createRoute({
    method: "delete",
    path: "/v1/runs/{id}",
    summary: "Finish a run",
    description:
      "Ends its batches and kills the workers that no other run needs. Answers when none is left, or after 30 s with " +
      "those that are. Again: the same.",
    security,
    request: { params: RunParams },
    responses: {
      200: { description: "It is finished.", content: { "application/json": { schema: RunFinished } } },
      ...describeProblems(["unauthorized", "run_not_found", "store_unavailable", "sandbox_unavailable"]),
    },
  });
}

function describeHeartbeat({ HeartbeatRequest }: RunSchemas) {
  return createRoute({
    method: "post",
    path: "/v1/runs/{id}/heartbeat",
    summary: "Keep a run alive",
    description: "A run without a heartbeat or a batch for 300 s expires. The body may be left out.",
    security,
    request: {
      params: RunParams,
      body: { required: false, content: { "application/json": { schema: HeartbeatRequest } } },
    },
    responses: {
      200: { description: "It is alive.", content: { "application/json": { schema: RunHeartbeat } } },
      ...describeProblems([
        "invalid_json",
        "unauthorized",
        "run_not_found",
        "run_finished",
        "unsupported_media_type",
        "invalid_request",
        "store_unavailable",
      ]),
    },
  });
}
