/** States of a run in which one clause of a condition alone decides. */
import type { Table, UpdateExpression } from "../../functions/pool/ports.ts";
import { finishExpression, markFinished } from "../../functions/pool/runs/finish.ts";
import { foldExpression, foldLedger, setBeatExpression } from "../../functions/pool/runs/fold-ledger.ts";
import { beatRun, heartbeatExpression } from "../../functions/pool/runs/heartbeat.ts";
import { addIdleShare, idleShareExpression } from "../../functions/pool/runs/idle-share.ts";
import { pruneExpression, pruneLanes } from "../../functions/pool/runs/prune-lanes.ts";
import { getRunRow } from "../../functions/pool/runs/read.ts";
import { registerExpression, registerRun } from "../../functions/pool/runs/register.ts";
import { claimUnreportedExpression, settleBatch } from "../../functions/pool/runs/settle.ts";
import { idleLedgerExpression, shareIdleTime } from "../../functions/pool/sweep/idle-time.ts";
import { addThroughLane, noteAt, wish } from "./run-samples.ts";
import { over, present, startMs, type TestHandler } from "./test-pool.ts";

const isRegistered = "attribute_exists(#registeredAtMs)";
const isNotFinished = "attribute_not_exists(#finishedAtMs)";
const isAsFolded = "(attribute_not_exists(#foldedUntil) OR #foldedUntil = :seenUntil)";
const isAsReported = "(attribute_not_exists(#reportedMs) OR #reportedMs = :seenMs)";
const longAfterMs = 3_000_000;

/** Brings the table into the state; the write that must be refused there. */
export type RunScene = (handler: TestHandler) => Promise<(table: Table) => Promise<unknown>>;

const finished: (write: (handler: ReturnType<typeof over>) => Promise<unknown>, runId?: string) => RunScene =
  (write, runId = "r1") =>
  async (handler) => {
    await registerRun(handler, runId, wish);
    await markFinished(handler, runId);
    return (table) => write(over(handler.at(1_000), table));
  };

const unknown: (write: (handler: ReturnType<typeof over>) => Promise<unknown>) => RunScene =
  (write) => async (handler) => (table) =>
    write(over(handler, table));

/** Another does what `between` says once the run was read, and before the write that follows. */
function overtaken(table: Table, between: () => Promise<unknown>): Table {
  let isDone = false;
  return {
    ...table,
    async update(...call) {
      if (!isDone) {
        isDone = true;
        await between();
      }
      return table.update(...call);
    },
  };
}

/** A registered run with an old batch in its ledger, or with idle time that no answer has told. */
async function withBatch(handler: TestHandler) {
  await registerRun(handler, "r1", wish);
  await noteAt(handler.at(10_000), "r1", "b1");
}
async function withIdleTime(handler: TestHandler) {
  await registerRun(handler, "r1", wish);
  await addIdleShare(handler, "r1", 60_000, startMs + 60_000);
}

const unregister = (handler: TestHandler) =>
  handler.table.update(
    { pk: "runs", sk: "R#r1" },
    { name: "lose", update: "REMOVE #r", clauses: [], columns: { "#r": "reg" } },
    {},
  );

export const onePruned = pruneExpression([{ lane: "~x", sequence: 1 }]);

export const runScenes: readonly [UpdateExpression, clause: string, harm: string, RunScene][] = [
  [
    registerExpression,
    isNotFinished,
    "a late retry that revives a run",
    finished((h) => registerRun(h, "r1", wish)),
  ],
  [
    heartbeatExpression,
    "#beatAtMs < :nowMs",
    "a run that ends since one clock is slow",
    async (handler) => {
      await registerRun(handler, "r1", wish);
      return (table) => beatRun(over(handler.at(-600_000), table), "r1");
    },
  ],
  [heartbeatExpression, isNotFinished, "a finished run that goes on", finished((h) => beatRun(h, "r1"))],
  [finishExpression, isRegistered, "a record of a run that never was", unknown((h) => markFinished(h, "r1"))],
  [
    foldExpression,
    isAsFolded,
    "a batch counted twice",
    async (handler) => {
      await withBatch(handler);
      const run = present(await getRunRow(handler, "r1"));
      const later = handler.at(longAfterMs);
      await foldLedger(later, run);
      return (table) => foldLedger(over(later, table), run);
    },
  ],
  [
    foldExpression,
    isRegistered,
    "a row of totals alone",
    async (handler) => {
      await withBatch(handler);
      const run = present(await getRunRow(handler, "r1"));
      const later = handler.at(longAfterMs);
      return (table) =>
        foldLedger(
          over(
            later,
            overtaken(table, () => unregister(handler)),
          ),
          run,
        );
    },
  ],
  [
    setBeatExpression,
    "#beatAtMs = :seenBeatAtMs",
    "a sign of life that goes back",
    async (handler) => {
      await withBatch(handler);
      const run = present(await getRunRow(handler, "r1"));
      await beatRun(handler.at(20_000), "r1");
      return (table) => foldLedger(over(handler.at(30_000), table), run);
    },
  ],
  [
    setBeatExpression,
    isNotFinished,
    "a finished run that goes on",
    async (handler) => {
      await withBatch(handler);
      const run = present(await getRunRow(handler, "r1"));
      await markFinished(handler, "r1");
      return (table) => foldLedger(over(handler.at(30_000), table), run);
    },
  ],
  [
    setBeatExpression,
    isRegistered,
    "a run of batches alone",
    async (handler) => {
      await withBatch(handler);
      const run = present(await getRunRow(handler, "r1"));
      await unregister(handler);
      return (table) => foldLedger(over(handler.at(30_000), table), run);
    },
  ],
  [
    claimUnreportedExpression,
    isAsReported,
    "idle time told by two answers",
    async (handler) => {
      await withIdleTime(handler);
      await settleBatch(handler, "r1", "b0", 0);
      await addIdleShare(handler, "r1", 60_000, startMs + 120_000);
      const other = () => settleBatch(handler, "r1", "b1", 0);
      return (table) => settleBatch(over(handler, overtaken(table, other)), "r1", "b2", 0);
    },
  ],
  [
    claimUnreportedExpression,
    isNotFinished,
    "totals that change after the end",
    async (handler) => {
      await withIdleTime(handler);
      const finish = () => markFinished(handler, "r1");
      return (table) => settleBatch(over(handler, overtaken(table, finish)), "r1", "b1", 0);
    },
  ],
  [
    claimUnreportedExpression,
    isRegistered,
    "a run of batches alone",
    async (handler) => {
      await withIdleTime(handler);
      return (table) =>
        settleBatch(
          over(
            handler,
            overtaken(table, () => unregister(handler)),
          ),
          "r1",
          "b1",
          0,
        );
    },
  ],
  [
    onePruned,
    "#lane0 = :lane0",
    "a lane removed that is in use again",
    async (handler) => {
      await registerRun(handler, "r1", wish);
      const lane = "~c1.0";
      await addThroughLane(handler, "r1", lane, startMs);
      await addThroughLane(handler, "r1", lane, startMs + 1);
      const seen = { runId: "r1", lanes: { [lane]: startMs } };
      return (table) => pruneLanes(over(handler, table), seen, startMs + 4_000_000);
    },
  ],
  [
    idleShareExpression,
    isRegistered,
    "a row of idle time alone",
    unknown((h) => addIdleShare(h, "r1", 1_000, startMs)),
  ],
  [
    idleShareExpression,
    isNotFinished,
    "totals that change after the end",
    finished((h) => addIdleShare(h, "r1", 1_000, startMs)),
  ],
  [
    idleShareExpression,
    "(attribute_not_exists(#idleUntilMs) OR #idleUntilMs < :untilMs)",
    "idle time paid twice",
    async (handler) => {
      await registerRun(handler, "r1", wish);
      await addIdleShare(handler, "r1", 1_000, startMs);
      return (table) => addIdleShare(over(handler, table), "r1", 1_000, startMs);
    },
  ],
  [
    idleLedgerExpression,
    "(attribute_not_exists(#untilMs) OR #untilMs = :seenUntilMs)",
    "an interval handed out by two passes",
    async (handler) => {
      const demand = { settings: handler.settings, runs: [], slots: [aliveSlot], nowMs: startMs + 60_000 };
      return async (table) => {
        // Another pass moves the ledger on between our read and our write.
        const racing: Table = {
          ...table,
          async get(key) {
            const row = await table.get(key);
            await shareIdleTime(handler, {
              ...demand,
              nowMs: startMs + 59_000,
              slots: [{ ...aliveSlot, state: "leased" }],
            });
            return row;
          },
        };
        const before = structuredClone(await handler.table.get({ pk: "runs", sk: "idle" }));
        await shareIdleTime(over(handler, racing), { ...demand, slots: [{ ...aliveSlot, state: "leased" }] });
        const after = await handler.table.get({ pk: "runs", sk: "idle" });
        return { before, until: after?.until };
      };
    },
  ],
];

const aliveSlot = { slot: 0, state: "ready", fence: 1, generation: 1, bornAtMs: startMs } as const;
