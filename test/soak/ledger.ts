/** What came of the soak: counts, and everything that must never happen. */
import type { KnownSample } from "./programs.ts";

export interface Violation {
  readonly what: string;
  readonly atS: number;
  readonly detail: unknown;
}

/** Faults that a failing platform may be the reason of. Others would be the product's own. */
const namedFaults: readonly string[] = [
  "no_capacity",
  "worker_lost",
  "supervisor_protocol",
  "isolation_failed",
  "starved",
  "deadline_exceeded",
  "sandbox_unavailable",
  "store_unavailable",
];

/** Refusals that a trainer waits out. */
const passingRefusals: Readonly<Record<string, number>> = {
  in_progress: 409,
  no_capacity: 503,
  sandbox_unavailable: 503,
  store_unavailable: 503,
  isolation_failed: 503,
  stopping: 503,
};

export interface SampleFault {
  readonly code: string;
  readonly retryable: boolean;
}

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly retryAfterS: number | null;
  readonly detail: string;
}

export type Ledger = ReturnType<typeof openLedger>;

const mostKeptViolations = 50;

export function openLedger(nowS: () => number) {
  const violations: Violation[] = [];
  const counts = {
    batches: 0,
    samples: 0,
    violations: 0,
    falseZeros: 0,
    falseOnes: 0,
    /** Rewards that were right, by the kind of the program. */
    rewards: {} as Record<string, { ones: number; parts: number; zeros: number; nulls: number }>,
    nullsByCode: {} as Record<string, number>,
    nullsNotRetryable: 0,
    nullsInTheEnd: 0,
    incidents: 0,
    /** Samples that got their first null, and those that got another one when they were sent again. */
    nullsAtFirst: 0,
    nullsAfterResend: 0,
    refusals: {} as Record<string, number>,
    other: {} as Record<string, number>,
  };
  const violate = (what: string, detail: unknown) => {
    counts.violations += 1;
    if (violations.length < mostKeptViolations) violations.push({ what, atS: nowS(), detail });
  };
  return {
    counts,
    violations,
    violate,
    /** Anything else that is worth a number. */
    note(what: string): void {
      counts.other[what] = (counts.other[what] ?? 0) + 1;
    },
    noteRefusal(refusal: Refusal): void {
      const { status, code, retryAfterS } = refusal;
      counts.refusals[code] = (counts.refusals[code] ?? 0) + 1;
      if (passingRefusals[code] !== status) violate("refused what is in order", refusal);
      else if (!(retryAfterS !== null && retryAfterS > 0))
        violate("refused without a time to retry", refusal);
    },
    noteReward(sample: KnownSample, reward: number | null, fault: SampleFault | undefined): void {
      counts.samples += 1;
      counts.rewards[sample.kind] ??= { ones: 0, parts: 0, zeros: 0, nulls: 0 };
      const row = counts.rewards[sample.kind];
      if (row === undefined) throw new Error("there is a row");
      if (reward === null) {
        row.nulls += 1;
        if (fault === undefined || !namedFaults.includes(fault.code)) {
          violate("null without a fault of the platform", { name: sample.name, fault });
          return;
        }
        counts.nullsByCode[fault.code] = (counts.nullsByCode[fault.code] ?? 0) + 1;
        if (!fault.retryable) counts.nullsNotRetryable += 1;
        return;
      }
      if (reward !== sample.reward) {
        if (reward < sample.reward) counts.falseZeros += 1;
        else counts.falseOnes += 1;
        violate(reward < sample.reward ? "false zero" : "false one", { got: reward, sample });
        return;
      }
      if (fault !== undefined) violate("a reward and a fault", { reward, fault });
      if (reward === 1) row.ones += 1;
      else if (reward === 0) row.zeros += 1;
      else row.parts += 1;
    },
  };
}
