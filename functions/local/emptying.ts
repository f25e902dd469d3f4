/** Ending the sandboxes of a local stack's pool. */
import { stopPool } from "../pool/sweep/stop-pool.ts";
import { Fault } from "../rewards/faults.ts";
import type { Service } from "../wiring.ts";

const endedWithinMs = 30_000;

/** Kills what the list shows, once; returns what it shows then. The pool can be used again. */
export async function emptyPool({ pool, leases }: Service): Promise<readonly string[]> {
  const { sandboxes } = pool;
  await leases.settled();
  const poolId = await pool.poolId();
  await Promise.all((await sandboxes.list(poolId)).map(({ sandboxId }) => sandboxes.kill(sandboxId)));
  return (await sandboxes.list(poolId)).map(({ sandboxId }) => sandboxId);
}

/**
 * Ends a pool that only this process knows, for good: waits for the creations that are under way, then kills until the
 * list shows none, and looks on for a while where one may still land. Throws a `Fault` that says what is left.
 */
export async function endPool({ pool, leases, creationsSettled }: Service): Promise<void> {
  await leases.settled();
  if ((await creationsSettled()) === 0) return;
  const deadlineAtMs = pool.clock.nowMs() + endedWithinMs;
  const { remainingSandboxes: left } = await stopPool(pool, { deadlineAtMs });
  if (left?.length === 0) return;
  const what = left === null ? "E2B does not tell which are left" : `still there: ${left.join(", ")}`;
  const minutes = pool.settings.ttlMs / 60_000;
  throw new Fault(
    "sandbox_unavailable",
    `Sandboxes could not be ended (${what}). They end by themselves within ${minutes} minutes.`,
  );
}
