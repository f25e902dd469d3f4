/**
 * What callers were told of their batches, against what their runs' totals say in the end.
 *
 * A batch is in the totals once, however many attempts there were at it: surely if it was told after it was counted, and
 * maybe if whoever counted it got no answer or died.
 */
import { getRun } from "../../functions/pool/runs/read.ts";
import type { SlotContext } from "../../functions/pool/slots/write.ts";
import type { Watch } from "./watch.ts";

export type TotalName = "passed" | "faults";

interface Bounds {
  least: number;
  most: number;
}

export interface Told {
  /** Somebody is about to count a result; the functions returned tell how that ended, if it is known. */
  counting(runId: string, batchId: string | null, what: TotalName): Counting;
  /** A caller found the recorded answer. */
  answered(batchId: string): void;
  /** By somebody's clock the batch was long forgotten: it may pass once more. */
  mayRepeat(batchId: string): void;
  /** Compares the totals of each run. */
  check(ctx: SlotContext, watch: Watch): Promise<void>;
}

export interface Counting {
  /** Surely, for nobody's clock is wrong who might fold the ledger before it is written. */
  isCounted(): void;
  isNotCounted(): void;
}

interface Account {
  readonly passed: Bounds;
  readonly faults: Bounds;
}

export function createTold(): Told {
  const accounts = new Map<string, Account>();
  /** Of batches with a key, which pass once, or never. */
  const keyed = new Map<string, { readonly runId: string; readonly passed: Bounds }>();

  function accountOf(runId: string): Account {
    const known = accounts.get(runId);
    const account = known ?? { passed: { least: 0, most: 0 }, faults: { least: 0, most: 0 } };
    if (known === undefined) accounts.set(runId, account);
    return account;
  }

  function boundsOf(runId: string, of: "passed"): Bounds {
    const sum = { ...accountOf(runId)[of] };
    for (const batch of keyed.values()) {
      if (batch.runId !== runId) continue;
      sum.least += batch.passed.least;
      sum.most += batch.passed.most;
    }
    return sum;
  }

  return {
    counting(runId, batchId, what) {
      const bounds = accountOf(runId)[what];
      if (batchId !== null && what === "passed") {
        const { least, most } = keyed.get(batchId)?.passed ?? { least: 0, most: 1 };
        const passed = { least, most };
        keyed.set(batchId, { runId, passed });
        return {
          isCounted: () => {
            passed.least = Math.max(least, 1);
          },
          isNotCounted() {},
        };
      }
      bounds.most += 1;
      return {
        isCounted() {
          bounds.least += 1;
        },
        isNotCounted() {
          bounds.most -= 1;
        },
      };
    },
    answered(batchId) {
      const batch = keyed.get(batchId);
      if (batch !== undefined) batch.passed.least = Math.max(batch.passed.least, 1);
    },
    mayRepeat(batchId) {
      const batch = keyed.get(batchId);
      if (batch !== undefined) batch.passed.most += 1;
    },
    async check(ctx, watch) {
      for (const [runId, { faults }] of accounts) {
        const run = await getRun(ctx, runId);
        if (run === null) continue;
        watch.counts.totalsChecked += 1;
        compare("passed", run.totals.verdicts.passed, boundsOf(runId, "passed"));
        compare("faults", run.totals.faults, faults);

        function compare(name: TotalName, total: number, { least, most }: Bounds): void {
          const told = `${runId}: ${total} ${name}, and ${least} to ${most} were told`;
          if (total < least) watch.violation("what was told is not in the totals", told);
          if (total > most) watch.violation("totals say more than was told", told);
        }
      }
    },
  };
}
