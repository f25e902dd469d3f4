/** The Lambda that a schedule calls every minute: one pass over the pool, told in one line. */
import { systemClock } from "../adapters/system-clock.ts";
import { type SweepContext, sweepPool } from "../pool/sweep/sweep.ts";
import { Fault } from "../rewards/faults.ts";
import { type PoolWiring, wirePool } from "../wiring-pool.ts";
import { type LambdaContext, runInvocation } from "./invocation.ts";
import { createLambdaTelemetry } from "./telemetry.ts";

export type CleanupHandler = (event: unknown, context: LambdaContext) => Promise<void>;

/** Calls under way at the deadline are waited for; the longest takes about so long. */
const closingMs = 12_000;

/** Makes the handler. It throws, for the schedule's own retries and alarms, only when a pass can't even begin. */
export function createCleanupHandler(readSettings: () => PoolWiring): CleanupHandler {
  const telemetry = createLambdaTelemetry();
  const pool = wireOrKeep(readSettings);
  return (_event, context) =>
    runInvocation({ context, requestId: context.awsRequestId }, async () => {
      if (pool instanceof Fault) {
        telemetry.reportNoSweep(pool);
        throw pool;
      }
      const leftMs = Math.max(0, context.getRemainingTimeInMillis() - closingMs);
      const deadlineAtMs = systemClock.nowMs() + leftMs;
      telemetry.reportSweep(await sweepPool(pool, { deadlineAtMs }));
    });
}

/** What is wrong with the settings is told by each pass, not by a process that can't start. */
function wireOrKeep(readSettings: () => PoolWiring): SweepContext | Fault {
  try {
    return wirePool(readSettings(), { clock: systemClock }).pool;
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}
