/**
 * What an E2B plan allows. The figures are those of https://e2b.dev/docs/billing; add-ons raise them, so each is
 * settable.
 */
export interface Plan {
  /** Sandboxes that run at one time; paused ones don't count. */
  readonly concurrentSandboxes: number;
  readonly createsPerSecond: number;
  /** From the creation, or the last resume, to the latest end that a timeout can set. */
  readonly maxLifeMs: number;
}

export type PlanName = "hobby" | "pro";

const HOUR_MS = 3_600_000;

export const PLANS: Readonly<Record<PlanName, Plan>> = {
  hobby: { concurrentSandboxes: 20, createsPerSecond: 1, maxLifeMs: HOUR_MS },
  pro: { concurrentSandboxes: 100, createsPerSecond: 5, maxLifeMs: 24 * HOUR_MS },
};

/** Counts creations in the second before now. `admit` is false, and counts nothing, when there were too many. */
export interface CreationGate {
  admit(nowMs: number): boolean;
}

export function createCreationGate(createsPerSecond: number): CreationGate {
  let recentMs: number[] = [];
  return {
    admit(nowMs) {
      recentMs = recentMs.filter((atMs) => nowMs - atMs < 1000);
      if (recentMs.length >= createsPerSecond) return false;
      recentMs.push(nowMs);
      return true;
    },
  };
}
