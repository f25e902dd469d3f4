/**
 * A sign of life of a worker that may have been lost while it was idle: a chunk of no programs, which it ends at once.
 * Without it, every worker that E2B ended unnoticed would cost the work that it is given first.
 */
import type { Dispatch, Service } from "./dispatch-state.ts";
import { endsBatch, Fault } from "./faults.ts";
import { lossesOf } from "./lost-services.ts";
import type { ChunkEnd } from "./ports.ts";
import { type ChunkCondition, conditionAfterFault } from "./worker-condition.ts";

/** Whether the worker may be used. Throws what ends the batch. */
export async function findSignOfLife(state: Dispatch, service: Service): Promise<ChunkCondition> {
  const { clock, deadlineAtMs, newId } = state.setup;
  const deadlineMs = Math.max(1, deadlineAtMs - clock.nowMs());
  const chunk = { chunkId: newId(), deadlineMs, programs: [] };
  let end: ChunkEnd | null = null;
  try {
    for await (const event of service.lease.execute(chunk, state.stop.signal))
      if (event.kind === "summary") end = event.end;
    if (end !== null && end !== "superseded") service.isProved = true;
    if (service.isProved && end !== "completed") throw doesNotTake(end);
  } catch (error) {
    if (state.stop.signal.aborted) return "healthy";
    if (!(error instanceof Fault) || endsBatch(error)) throw error;
    lossesOf(state, service).noteUnstarted(true, error);
    return conditionAfterFault(error);
  }
  return service.isProved ? "healthy" : "broken";
}

/** It lives, and does not take our work just now. */
function doesNotTake(end: ChunkEnd | null): Fault {
  return new Fault("sandbox_unavailable", `The worker ended a chunk of no programs as ${end}.`);
}
