/**
 * Creating workers up to the target, at the pool's pace.
 *
 * Creations take seconds and the pace may allow several a second, so they run side by side. The pool is read again
 * before each: handlers create too, runs come and go. Whoever calls has a deadline; creations that are under way then
 * are left to themselves, and what dies with the process is healed as an abandoned creation.
 */
import { type CreationContext, createWorker } from "../creation.ts";
import { backoffMs, drawSome } from "../polling.ts";
import { emptySlots, readPool } from "../pool-view.ts";
import { noteStart } from "../runs/note-start.ts";
import { listRunRows } from "../runs/read.ts";
import { type SlotRow, shortTag } from "../slot-row.ts";
import { neediestRun, shortfall } from "./demand.ts";
import { attempt, noteFault, type SweepLog } from "./report.ts";

/** A creation seldom takes longer; none is started with less time left. */
const creationTakesMs = 6_000;
/** Failures in a row after which this pass gives up. */
const mostFailures = 3;

export interface CreationOptions {
  readonly deadlineAtMs: number;
  readonly signal?: AbortSignal;
}

interface Creating {
  readonly ctx: CreationContext;
  readonly log: SweepLog;
  readonly options: CreationOptions;
  /** By slot, so that a claim which isn't to be seen yet is counted. */
  readonly underWay: Map<number, Promise<void>>;
  failures: number;
  isHopeless: boolean;
}

/** Creates until the target is reached or the time is used up; the number of workers created. */
export async function createUpToTarget(
  ctx: CreationContext,
  log: SweepLog,
  options: CreationOptions,
): Promise<number> {
  const before = log.did.created;
  const state: Creating = { ctx, log, options, underWay: new Map(), failures: 0, isHopeless: false };
  const { settings, random } = ctx;
  try {
    while (!isOver(state)) {
      const next = await findNext(state);
      if (next === null) break;
      if (next.waitMs === 0) start(state, next.slot, next.runId);
      const backMs = state.failures > 0 ? backoffMs(state.failures, random()) : 0;
      const paceMs = Math.round(settings.createIntervalMs * (1 + random() / 4));
      await sleepAtMost(state, (next.waitMs > 0 ? next.waitMs : paceMs) + backMs);
    }
  } catch (error) {
    noteFault(log, "create", error);
  }
  const done = new AbortController();
  const timeIsUp = sleepAtMost(state, Number.POSITIVE_INFINITY, done.signal);
  await Promise.race([Promise.all(state.underWay.values()), timeIsUp]);
  done.abort();
  return log.did.created - before;
}

function isOver({ ctx, options, isHopeless }: Creating): boolean {
  const isTooLate = ctx.clock.nowMs() + creationTakesMs > options.deadlineAtMs;
  return isHopeless || isTooLate || options.signal?.aborted === true;
}

/** Sleeps, but not beyond the deadline, nor after either signal. */
function sleepAtMost({ ctx, options }: Creating, ms: number, done?: AbortSignal): Promise<void> {
  const signals = [options.signal, done].filter((signal) => signal !== undefined);
  const untilDeadlineMs = options.deadlineAtMs - ctx.clock.nowMs();
  return ctx.clock.sleep(Math.max(1, Math.min(ms, untilDeadlineMs)), AbortSignal.any(signals));
}

/** Where and for whom the next worker is created, and how long the pace says to wait; null when none is missing. */
async function findNext(state: Creating): Promise<{ slot: number; runId: string; waitMs: number } | null> {
  const { ctx, underWay } = state;
  const runs = await listRunRows(ctx);
  const view = await readPool(ctx);
  const nowMs = ctx.clock.nowMs();
  const slots = view.slots.map((row) => (underWay.has(row.slot) ? asCreating(ctx, row) : row));
  const demand = { settings: ctx.settings, runs, slots, nowMs };
  const runId = neediestRun(demand);
  if (runId === null || shortfall(demand) === 0) return null;
  const [row] = drawSome(emptySlots(ctx, { ...view, slots }), 1, ctx.random);
  if (row === undefined) return null;
  return { slot: row.slot, runId, waitMs: Math.max(0, view.nextCreateAtMs - nowMs) };
}

function asCreating({ settings }: CreationContext, row: SlotRow): SlotRow {
  if (row.state !== "empty") return row;
  return { ...row, state: "creating", supervisorVersion: settings.supervisorVersion };
}

function start(state: Creating, slot: number, runId: string): void {
  const { ctx, log, underWay } = state;
  const creation = createWorker(ctx, slot, shortTag(runId), () => null)
    .then(async (result) => {
      await attempt(log, "note start", () => noteStart(ctx, runId, result.start));
      if (result.kind === "published") {
        log.did.created += 1;
        state.failures = 0;
      }
      if (result.kind === "failed") fail(state, result.fault, result.fault.retryable);
    })
    .catch((error: unknown) => fail(state, error, true))
    .finally(() => underWay.delete(slot));
  underWay.set(slot, creation);
}

function fail(state: Creating, error: unknown, isRetryable: boolean): void {
  noteFault(state.log, "create", error);
  state.failures += 1;
  if (!isRetryable || state.failures >= mostFailures) state.isHopeless = true;
}
