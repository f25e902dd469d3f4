/**
 * What a batch adds to its run: its result, once, and its cost, whatever becomes of it.
 *
 * A batch without a key is counted when it is graded: nobody else can answer in its place. The result of one with a key
 * counts for the attempt that won the record, and only once that was won; the others have their cost counted, for it was
 * paid. Whoever finds the recorded answer later writes the entry that goes with it again, so that it is counted even if
 * the one who recorded it died before he could.
 */
import type { VerdictKind } from "../grading/verdict.ts";
import {
  type BatchEntry,
  type LedgerPlace,
  newPlace,
  writeBatchEntry,
  writeCostEntry,
} from "../pool/runs/ledger.ts";
import { findPlace, type PlaceFound, settleBatch } from "../pool/runs/settle.ts";
import type { SlotContext } from "../pool/slots/write.ts";
import type { SampleResult } from "./batch.ts";
import { Fault } from "./faults.ts";
import { insistOnTable } from "./table-patience.ts";
import type { WatchedWorkers } from "./watched-workers.ts";

export interface AccountDeps {
  readonly pool: SlotContext & { readonly random: () => number };
  /** Told what went wrong where the batch goes on all the same. */
  readonly report: (fault: unknown) => void;
}

type Crew = Pick<WatchedWorkers, "heldMs" | "created">;

export interface BatchAccount {
  addResult(result: SampleResult): void;
  /** Adds time in which a sandbox was started for the batch; the run's ledger has an entry of its own for it. */
  addStart(ms: number): void;
  startMs(): number;
  /** Looks at the run while the batch's programs run, so that a short batch need not wait for that when it is graded. */
  lookAhead(): void;
  /** The workers that are paid for. */
  payFor(workers: Crew): void;
  /**
   * Closes the account of a graded batch; worker time since the run's batch before, or null when the run's record could
   * not be reached. Throws `run_finished`.
   */
  settle(retries: number): Promise<number | null>;
  /** What is to be counted, once it was settled; null when there is no run any more to count it for. */
  entry(): BatchEntry | null;
  /** Counts result and cost; whether that came through. Never throws: a graded batch is graded. */
  countResult(): Promise<boolean>;
  /** Counts the cost of a batch that has no answer, for the reason given. Never throws. */
  countCost(reason: unknown): Promise<void>;
}

/** What was seen of the run while the batch ran is believed for so long. */
const believedMs = 2_000;
/** How long a graded batch's answer waits for a table that doesn't take its entry. */
const insistForMs = 5_000;

export function createBatchAccount(
  deps: AccountDeps,
  batch: { readonly runId: string; readonly attemptId: string; readonly hasKey: boolean },
): BatchAccount {
  const { pool } = deps;
  const { runId, attemptId, hasKey } = batch;
  const results = tallyResults();
  let entry: BatchEntry | null = null;
  let crew: Crew = { heldMs: () => 0, created: () => 0 };
  let startMs = 0;
  let ahead: { readonly atMs: number; readonly place: Promise<PlaceFound> } | null = null;
  const find = () => findPlace(pool, runId, attemptId);
  const recentPlace = () => {
    const isRecent = ahead !== null && pool.clock.nowMs() - ahead.atMs < believedMs;
    return isRecent && ahead !== null ? ahead.place.catch(find) : find();
  };
  const cost = () => ({ workersCreated: crew.created(), busyMs: crew.heldMs() });
  return {
    addResult: results.add,
    addStart(ms) {
      startMs += ms;
    },
    startMs: () => startMs,
    lookAhead() {
      if (ahead !== null) return;
      const place = find();
      place.catch(() => {}); // who settles looks again
      ahead = { atMs: pool.clock.nowMs(), place };
    },
    payFor(workers) {
      crew = workers;
    },
    entry: () => entry,
    async settle(retries) {
      const ownMs = crew.heldMs() + startMs;
      const settled = await orReport(deps, () => settleBatch(pool, runId, attemptId, ownMs, recentPlace()));
      if (settled?.kind === "run_finished") throw runFinished(runId);
      if (settled?.kind === "run_not_found") return null; // its record's time was over in the middle of the batch
      const at = settled?.at ?? blindPlace(deps, batch);
      entry = { at, note: { ...results.read(), ...cost(), retries, reportedMs: ownMs } };
      return settled?.sincePreviousMs ?? null;
    },
    async countResult() {
      const counted = entry;
      return counted === null || (await insist(deps, () => writeBatchEntry(pool, counted.at, counted.note)));
    },
    async countCost(reason) {
      const at = entry?.at ?? (await findPlaceOrBlind(deps, batch));
      if (at === null) return;
      const noResult = { samples: 0, verdicts: {}, faults: 0, retries: 0, reportedMs: 0 };
      const write = isLastAttempt(reason, hasKey) ? writeBatchEntry : writeCostEntry;
      await insist(deps, () => write(pool, at, { ...noResult, ...cost() }));
    },
  };
}

/** Whether nothing more comes of the batch: one that is to be sent again is counted then. */
function isLastAttempt(reason: unknown, hasKey: boolean): boolean {
  const code = reason instanceof Fault ? reason.code : null;
  return hasKey ? code === "cancelled" : code !== "stopping";
}

/** Where a batch without an answer is counted; null when its run takes nothing more. */
async function findPlaceOrBlind(
  deps: AccountDeps,
  batch: Parameters<typeof blindPlace>[1],
): Promise<LedgerPlace | null> {
  const found = await orReport(deps, () => findPlace(deps.pool, batch.runId, batch.attemptId));
  if (found === undefined) return blindPlace(deps, batch);
  return found.kind === "found" ? found.at : null;
}

/** A place for a run that could not be read: a moment later its ledger may be there. */
function blindPlace(
  { pool }: AccountDeps,
  { runId, attemptId }: { readonly runId: string; readonly attemptId: string },
): LedgerPlace {
  return newPlace(pool, { runId, foldedUntil: 0 }, attemptId);
}

async function orReport<Value>(
  { report }: AccountDeps,
  work: () => Promise<Value>,
): Promise<Value | undefined> {
  try {
    return await work();
  } catch (fault) {
    report(fault);
    return undefined;
  }
}

/** Entries may be written again: what got no answer is sent until one comes, for a while. False, and told, without one. */
async function insist({ pool, report }: AccountDeps, write: () => Promise<void>): Promise<boolean> {
  const waiting = { deadlineAtMs: pool.clock.nowMs() + insistForMs, signal: new AbortController().signal };
  try {
    await insistOnTable({ ...pool, report: () => {} }, waiting, write);
    return true;
  } catch (fault) {
    report(fault);
    return false;
  }
}

export function runFinished(runId: string): Fault {
  const detail = `The run '${runId}' was finished before the batch was over. Nothing of the batch was counted.`;
  return new Fault("run_finished", detail, { retryable: false });
}

function tallyResults() {
  const verdicts: Partial<Record<VerdictKind, number>> = {};
  let samples = 0;
  let faults = 0;
  return {
    read: () => ({ samples, verdicts, faults }),
    add(result: SampleResult) {
      samples += 1;
      if (result.kind === "fault") faults += 1;
      if (result.kind !== "graded") return;
      for (const { verdict } of result.cases) {
        if (verdict !== null) verdicts[verdict.kind] = (verdicts[verdict.kind] ?? 0) + 1;
      }
    },
  };
}
