/** Why a batch of which no program was started is refused. */
import { Fault } from "./faults.ts";

/** A worker that was had for longer than this should have started something. */
const startsWithinMs = 1_000;

export function noCapacity(): Fault {
  const detail = "No worker became free before the batch's deadline. Send it again later.";
  return new Fault("no_capacity", detail);
}

/** The batch had its first worker for `hadForMs` when its time was up. */
export function nothingStarted(hadForMs: number): Fault {
  if (hadForMs > startsWithinMs) {
    const detail =
      "The batch's workers had started no program by its deadline: they answered too late, or not at all. " +
      "Send it again.";
    return new Fault("sandbox_unavailable", detail);
  }
  const detail =
    `The first worker became free ${Math.round(hadForMs)} ms before the batch's deadline, too late to start a ` +
    "program. Send it again later, or with a longer deadline_ms.";
  return new Fault("no_capacity", detail);
}
