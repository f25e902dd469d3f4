/**
 * The invocation on whose behalf code runs.
 *
 * It follows the calls, not the clock: work that an earlier invocation left behind, and that goes on when a frozen
 * process is continued, still speaks in the name of the request that began it.
 *
 * It is over when what it runs is, and not before: AWS's client takes an event loop that has run empty for the end (it
 * answers in the function's place, or ends the process), although the handler only sleeps until the next try.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { holdEventLoop } from "../adapters/event-loop.ts";

/** What the platform tells with every event; the parts of it that are used here. */
export interface LambdaContext {
  readonly awsRequestId: string;
  readonly functionName: string;
  readonly functionVersion: string;
  readonly invokedFunctionArn: string;
  readonly memoryLimitInMB: string;
  getRemainingTimeInMillis(): number;
}

export interface Invocation {
  readonly context: LambdaContext;
  /** The caller's or ours; also in the answer. */
  readonly requestId: string;
  /** Once it is known for which run the request is. */
  runId?: string;
}

const storage = new AsyncLocalStorage<Invocation>();

export function runInvocation<T>(invocation: Invocation, work: () => Promise<T>): Promise<T> {
  return storage.run(invocation, () => holdEventLoop(work));
}

/** Undefined while the process starts. */
export function currentInvocation(): Invocation | undefined {
  return storage.getStore();
}
