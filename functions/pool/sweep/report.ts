/** What one pass of the sweep did, as one structured line. */
import { Fault } from "../../rewards/faults.ts";
import type { SlotState } from "../slot-row.ts";

export interface SweepCounts {
  /** Sandboxes killed that no slot knew. */
  orphansKilled: number;
  /** Sandboxes killed of slots that are being drained. */
  condemnedKilled: number;
  /** Slots taken back from a creator, a holder, a drainer past their time. */
  creationsExpired: number;
  /** Creations for runs that are over, taken from their creators. */
  creationsAbandoned: number;
  leasesExpired: number;
  /** Leases that ended later than any may, brought back to that. */
  leasesShortened: number;
  /** Leases of a run that was finished, taken from their holders. */
  leasesEnded: number;
  drainsRedone: number;
  /** Free workers taken out: their sandbox is gone, their life is near its end, another version, not wanted. */
  deadDrained: number;
  wornDrained: number;
  versionDrained: number;
  surplusDrained: number;
  /** Slots whose sandbox is certainly gone and that may be claimed again. */
  slotsEmptied: number;
  renewed: number;
  created: number;
  /** Actions that there was no time for; the next pass does them. */
  postponed: number;
}

export interface SweepFault {
  readonly action: string;
  /** A fault's code, or `internal` for a bug. */
  readonly code: string;
  readonly detail: string;
}

export interface SweepReport {
  readonly did: Readonly<SweepCounts>;
  /** Slots by state, as the pass found them; null when the table could not be read. */
  readonly found: Readonly<Record<SlotState, number>> | null;
  /** Sandboxes in the provider's list; null when it could not be read. */
  readonly listed: number | null;
  readonly liveRuns: number;
  readonly target: number;
  /** Idle time handed to runs. */
  readonly idleMs: number;
  readonly wallMs: number;
  /** The first faults, and how many there were. */
  readonly faults: readonly SweepFault[];
  readonly faultCount: number;
}

const keptFaults = 20;

/** A pass under way: what it counted, and what went wrong. */
export interface SweepLog {
  readonly did: SweepCounts;
  readonly faults: SweepFault[];
  faultCount: number;
}

export function newSweepLog(): SweepLog {
  return {
    did: {
      orphansKilled: 0,
      condemnedKilled: 0,
      creationsExpired: 0,
      creationsAbandoned: 0,
      leasesExpired: 0,
      leasesShortened: 0,
      leasesEnded: 0,
      drainsRedone: 0,
      deadDrained: 0,
      wornDrained: 0,
      versionDrained: 0,
      surplusDrained: 0,
      slotsEmptied: 0,
      renewed: 0,
      created: 0,
      postponed: 0,
    },
    faults: [],
    faultCount: 0,
  };
}

export function noteFault(log: SweepLog, action: string, error: unknown): void {
  log.faultCount += 1;
  if (log.faults.length >= keptFaults) return;
  const code = error instanceof Fault ? error.code : "internal";
  log.faults.push({ action, code, detail: error instanceof Error ? error.message : String(error) });
}

/** Does one thing; what it throws is noted, and undefined is the answer. One failure must not stop the others. */
export async function attempt<T>(
  log: SweepLog,
  action: string,
  act: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    noteFault(log, action, error);
    return undefined;
  }
}
