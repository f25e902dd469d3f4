/**
 * Admission: a batch takes its record, if it has a key, and enters its run, before anything of it is graded.
 *
 * Both need the table. While that does not answer, admission insists, for as long as its caller said and no longer: a
 * client whose connection is lost meanwhile sends the batch again, and this attempt may not learn of it. Of two attempts
 * under one key the table lets one go on. One that finds another of this process insisting need not wait until the table
 * can say so.
 */
import type { BatchClaim, BatchKey } from "../pool/batches/batch-record.ts";
import { type BatchBeginning, beginBatch } from "../pool/batches/begin-batch.ts";
import { endBatch } from "../pool/batches/end-batch.ts";
import type { HoldBatchContext } from "../pool/batches/held-batch.ts";
import type { Entry } from "../pool/runs/enter.ts";
import type { RunRefusal } from "../pool/runs/read.ts";
import type { RunRow } from "../pool/runs/run-row.ts";
import type { SlotContext } from "../pool/slots/write.ts";
import type { RunEntries } from "./run-entries.ts";
import { insistOnTable, type Waiting } from "./table-patience.ts";
import type { UnderWay } from "./under-way.ts";

/** For whom a batch is graded. */
export interface BatchOrigin {
  readonly runId: string;
  /** The batch's name and body, if its client gave it a key: then it can be cancelled by others, and sent again. */
  readonly key: BatchKey | null;
  /** How long its admission may wait for a table that does not answer. Default: no waiting. */
  readonly admitWithinMs?: number;
  /** Aborted when nobody waits for its answer any more. */
  readonly signal?: AbortSignal;
}

export type Refused = Exclude<BatchBeginning, { readonly kind: "begun" }> | RunRefusal;

export type Entered =
  | { readonly kind: "entered"; readonly run: RunRow; readonly claim: BatchClaim | null }
  | Refused;

export interface AdmissionDeps {
  readonly pool: SlotContext & HoldBatchContext;
  readonly entries: RunEntries;
  readonly underWay: UnderWay;
  readonly report: (fault: unknown) => void;
}

export type AdmitToRun = (origin: BatchOrigin, signal: AbortSignal) => Promise<Entered>;

/** One per container. Throws the table's faults, and why `signal` was aborted. */
export function createAdmission(deps: AdmissionDeps): AdmitToRun {
  const insisting = new Map<string, Insisting>();
  return (origin, signal) => admit(deps, insisting, origin, signal);
}

/** An attempt that waits for the table to take its batch's record. */
interface Insisting {
  readonly attempt: string;
  readonly bodyHash: string;
}

async function admit(
  deps: AdmissionDeps,
  insisting: Map<string, Insisting>,
  { runId, key, admitWithinMs = 0 }: BatchOrigin,
  signal: AbortSignal,
): Promise<Entered> {
  const waiting = { deadlineAtMs: deps.pool.clock.nowMs() + admitWithinMs, signal };
  const beginning = key === null ? null : await begin(deps, insisting, key, waiting);
  if (beginning !== null && beginning.kind !== "begun") return beginning;
  const claim = beginning?.claim ?? null;
  const entry = await enterClaimed(deps, runId, claim, waiting);
  return entry.kind === "entered" ? { ...entry, claim } : entry;
}

async function begin(
  deps: AdmissionDeps,
  insisting: Map<string, Insisting>,
  key: BatchKey,
  waiting: Waiting,
): Promise<BatchBeginning> {
  const { batchId, bodyHash } = key;
  const attempt = deps.pool.newId();
  const tryToBegin = async (): Promise<BatchBeginning> => {
    const first = insisting.get(batchId);
    if (first !== undefined && first.attempt !== attempt)
      return { kind: first.bodyHash === bodyHash ? "in_progress" : "idempotency_mismatch" };
    return beginBatch(deps.pool, key, attempt);
  };
  const report = (fault: unknown) => {
    if (!insisting.has(batchId)) insisting.set(batchId, { attempt, bodyHash });
    deps.report(fault);
  };
  try {
    return await insistOnTable({ ...deps.pool, report }, waiting, tryToBegin, (late) => endLate(deps, late));
  } finally {
    if (insisting.get(batchId)?.attempt === attempt) insisting.delete(batchId);
  }
}

/** A beginning that came through when nobody waited for it any more is over at once, so that the batch may be sent again. */
function endLate(deps: AdmissionDeps, late: Promise<BatchBeginning>): void {
  const ending = late.then(async (beginning) => {
    if (beginning.kind === "begun") await endBatch(deps.pool, beginning.claim);
  });
  void endBeside(deps, ending);
}

/** The end of a record that its caller may not wait for; who stops the service does. Never rejects. */
function endBeside({ report, underWay }: AdmissionDeps, ending: Promise<unknown>): Promise<unknown> {
  return ending.catch(report).finally(underWay.begin());
}

/** So long is waited for it, so that who sends the batch again at once is not told that it is under way. */
const endsWithinMs = 1_000;

async function waitForEnd({ pool: { clock } }: AdmissionDeps, ended: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  await Promise.race([ended, clock.sleep(endsWithinMs, done.signal)]);
  done.abort();
}

/** Enters the run. A batch that has claimed its record and can't be graded is over. */
async function enterClaimed(
  deps: AdmissionDeps,
  runId: string,
  claim: BatchClaim | null,
  waiting: Waiting,
): Promise<Entry> {
  const { pool, entries, report } = deps;
  let isEntered = false;
  try {
    const entry = await insistOnTable({ ...pool, report }, waiting, () => entries.enter(runId));
    isEntered = entry.kind === "entered";
    return entry;
  } finally {
    if (!isEntered && claim !== null) await waitForEnd(deps, endBeside(deps, endBatch(pool, claim)));
  }
}
