/**
 * The Lambda behind the function's URL: the app, its answers streamed.
 *
 * Theory of operation. One process answers one request at a time, and may be stopped for any while between two of
 * them, or in the middle of work that an answer has left behind; so the app finishes everything before its answer is
 * complete. The platform says when it will end the request, and batches end before that. It doesn't say when a client has
 * gone: the batch is graded to its end.
 */
import type { Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { holdEventLoop } from "../adapters/event-loop.ts";
import {
  type FunctionUrlEvent,
  readRequest,
  type StreamingRuntime,
  sendResponse,
} from "../adapters/function-url.ts";
import { systemClock } from "../adapters/system-clock.ts";
import { createMisconfiguredApp } from "../api/misconfigured-app.ts";
import { respondWithProblem, toProblem } from "../api/problem.ts";
import { isRequestId } from "../api/request-id.ts";
import { describeError } from "../log-lines.ts";
import { runIdPattern } from "../pool/runs/run-wish.ts";
import { Fault } from "../rewards/faults.ts";
import type { RequestHost } from "../rewards/hosted-batches.ts";
import { createUnderWay, type UnderWay } from "../rewards/under-way.ts";
import { type Service, type ServiceSettings, wireService } from "../wiring.ts";
import { currentInvocation, type Invocation, type LambdaContext, runInvocation } from "./invocation.ts";
import { createLambdaTelemetry, type LambdaTelemetry } from "./telemetry.ts";

export type RewardHandler = (
  event: FunctionUrlEvent,
  stream: Writable,
  context: LambdaContext,
) => Promise<void>;

declare const awslambda: StreamingRuntime;

/** How long answers may take once their batches are over, and what was written of them to leave the process. */
const lastAnswersMs = 500;
const handedOverMs = 100;

type FetchingApp = Pick<Service["app"], "fetch">;

/** Makes the handler. What is wrong with the settings is its answer to every request but that for its liveness. */
export function createRewardHandler(readSettings: () => ServiceSettings): RewardHandler {
  const telemetry = createLambdaTelemetry();
  const answers = createUnderWay();
  const app = wireOrExplain(readSettings, telemetry, answers);
  return awslambda.streamifyResponse(async (event, stream, context) => {
    const invocation: Invocation = { context, ...identify(event, context) };
    await runInvocation(invocation, async () => {
      const end = answers.begin();
      try {
        const response = await answer(app, event, invocation.requestId, telemetry);
        await send(response, stream, telemetry);
      } finally {
        end();
      }
    });
  });
}

function wireOrExplain(
  readSettings: () => ServiceSettings,
  telemetry: LambdaTelemetry,
  answers: UnderWay,
): FetchingApp {
  try {
    const service = wireService(readSettings(), {
      clock: systemClock,
      ...telemetry,
      host: hostOf(telemetry),
    });
    // Only a process with an extension beside it is told before its end; programs of a batch end then, too.
    const end = () => holdEventLoop(() => closeDown(service, answers)).finally(() => process.exit(0));
    process.once("SIGTERM", () => void end());
    return service.app;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    telemetry.writeLine({
      level: "error",
      message: "the service can't be put together",
      ...describeError(error),
    });
    return createMisconfiguredApp(error);
  }
}

/** Whoever waits for a batch is told to send it again before the process ends: the platform leaves it two seconds. */
async function closeDown(service: Service, answers: UnderWay): Promise<void> {
  await service.stop();
  await Promise.race([answers.idle(), sleep(lastAnswersMs)]);
  await sleep(handedOverMs);
}

function hostOf(telemetry: LambdaTelemetry): RequestHost {
  return {
    timeLeftMs: () => currentInvocation()?.context.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY,
    noteRun(runId) {
      const invocation = currentInvocation();
      if (invocation !== undefined) invocation.runId = runId;
    },
    reportBatch: telemetry.reportBatch,
    reportRefusal: telemetry.reportRefusal,
  };
}

/** The caller's own request id if it is well formed, else the platform's, which its own lines carry, too. */
function identify(
  { headers, rawPath }: FunctionUrlEvent,
  { awsRequestId }: LambdaContext,
): Pick<Invocation, "requestId" | "runId"> {
  const given = headers?.["x-request-id"];
  const requestId = given !== undefined && isRequestId(given) ? given : awsRequestId;
  const runId = /^\/v1\/runs\/([^/]+)/.exec(rawPath ?? "")?.[1] ?? "";
  return { requestId, ...(runIdPattern.test(runId) && { runId }) };
}

async function answer(
  app: FetchingApp,
  event: FunctionUrlEvent,
  requestId: string,
  telemetry: LambdaTelemetry,
): Promise<Response> {
  try {
    const request = readRequest(event);
    request.headers.set("x-request-id", requestId);
    // Where callers sign, the platform has checked who they are, and says it here.
    return await app.fetch(request, { requestContext: event.requestContext });
  } catch (error) {
    // An event of another kind, or a method that no request may have. The app answers for its own errors.
    const problem = toProblem(error);
    telemetry.log({ level: "error", message: "request failed", requestId, code: problem.code, cause: error });
    return respondWithProblem(problem, requestId);
  }
}

async function send(response: Response, stream: Writable, telemetry: LambdaTelemetry): Promise<void> {
  try {
    await sendResponse(response, stream, awslambda);
  } catch (error) {
    telemetry.writeLine({ level: "error", message: "an answer broke off", ...describeError(error) });
    throw new Error("the answer broke off"); // the platform logs what is thrown, and cuts the connection
  }
}
