/**
 * The pool's sizes and times. Every time is in milliseconds and every one has a reason beside it.
 */
import { longestDeadlineMs } from "../rewards/batch.ts";

/** What the sandbox provider's plan allows. */
export interface Plan {
  /** Sandboxes at once; one slot each. */
  readonly slots: number;
  /** At most one creation per interval. */
  readonly createIntervalMs: number;
  /** Longest life of a sandbox, whatever its time to live. */
  readonly lifeMs: number;
}

/** A tenth slower than the plans allow: two requests may come closer to each other on their way than they were sent. */
export const plans = {
  hobby: { slots: 20, createIntervalMs: 1_100, lifeMs: 3_600_000 },
  pro: { slots: 100, createIntervalMs: 220, lifeMs: 86_400_000 },
} as const satisfies Record<string, Plan>;

export interface PoolSettings extends Plan {
  /** A handler acquires only workers of its own supervisor version; up to 12 bytes. */
  readonly supervisorVersion: string;
  /** A lease's length; its holder extends it every `extendEveryMs`, so two extensions may fail. */
  readonly leaseMs: number;
  readonly extendEveryMs: number;
  /** How much two machines' clocks may differ: a lease counts as expired only this long after its end. */
  readonly graceMs: number;
  /**
   * How long a slot stays `creating` before it is taken for abandoned. Longer than a creation may take **plus** the
   * time in which one that timed out may still land, or a slot could come to have two sandboxes.
   */
  readonly createLeaseMs: number;
  /** When the creator itself gives up. */
  readonly createTimeoutMs: number;
  /** How long the one who drains has for the kill before another may redo it. */
  readonly drainLeaseMs: number;
  /** A sandbox's time to live; the sweep renews it, and a holder does so when the sweep is late. */
  readonly ttlMs: number;
  /** A holder renews below this. The sweep renews below 400 s, so a holder seldom has to. */
  readonly holderRenewsBelowMs: number;
  /** A worker with less life than this left is not given out. */
  readonly minRemainingMs: number;
  /** Mean time between two looks at the table of a waiting acquirer. */
  readonly pollMs: number;
}

/** The settings of a plan; throws a RangeError that names what does not fit together. */
export function poolSettings(
  plan: Plan,
  overrides: Partial<PoolSettings> & Pick<PoolSettings, "supervisorVersion">,
): PoolSettings {
  const settings: PoolSettings = {
    ...plan,
    leaseMs: 60_000,
    extendEveryMs: 20_000,
    graceMs: 5_000,
    createLeaseMs: 110_000,
    createTimeoutMs: 45_000,
    drainLeaseMs: 60_000,
    ttlMs: 600_000,
    holderRenewsBelowMs: 300_000,
    minRemainingMs: 130_000,
    pollMs: 700,
    ...overrides,
  };
  const problems = settingsProblems(settings);
  if (problems.length > 0) throw new RangeError(`pool settings: ${problems.join("; ")}`);
  return settings;
}

function settingsProblems(s: PoolSettings): string[] {
  const leastLifeMs = longestDeadlineMs + s.createTimeoutMs + s.minRemainingMs;
  const rules: [boolean, string][] = [
    [Number.isInteger(s.slots) && s.slots >= 1 && s.slots <= 1_000, "slots must be 1 to 1000"],
    [s.createIntervalMs > 0, "createIntervalMs must be positive"],
    [s.extendEveryMs * 2 < s.leaseMs, "a lease must outlive two extensions"],
    [s.graceMs * 2 < s.leaseMs, "a lease must outlive twice the clocks' difference"],
    [
      s.createTimeoutMs + s.graceMs < s.createLeaseMs,
      "a creation must time out before its slot is taken back",
    ],
    [s.minRemainingMs > s.leaseMs + s.graceMs, "a worker must outlive a lease"],
    [s.minRemainingMs < s.ttlMs && s.minRemainingMs < s.lifeMs / 2, "a new worker must have life left"],
    [
      s.lifeMs >= leastLifeMs,
      `lifeMs is ${s.lifeMs}, and must be at least ${leastLifeMs}: a batch's deadline_ms may be ${longestDeadlineMs}, ` +
        "and a worker made for it must outlive that",
    ],
    [Buffer.byteLength(s.supervisorVersion) <= 12, "supervisorVersion must have at most 12 bytes"],
    [s.supervisorVersion !== "", "supervisorVersion must not be empty"],
  ];
  return rules.filter(([holds]) => !holds).map(([, problem]) => problem);
}
