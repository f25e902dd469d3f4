/** States of a run in which one clause of a condition alone decides. */
import type { Table, UpdateExpression } from "../../functions/pool/ports.ts";
import { finishExpression, markFinished } from "../../functions/pool/runs/finish.ts";
import { beatRun, heartbeatExpression } from "../../functions/pool/runs/heartbeat.ts";
import { addIdleShare, idleShareExpression } from "../../functions/pool/runs/idle-share.ts";
import {
  createBatchNotes,
  noteDefaultExpression,
  noteExpression,
} from "../../functions/pool/runs/note-batch.ts";
import { pruneExpression, pruneLanes } from "../../functions/pool/runs/prune-lanes.ts";
import { registerExpression, registerRun } from "../../functions/pool/runs/register.ts";
import { runKey } from "../../functions/pool/runs/run-row.ts";
import { idleLedgerExpression, shareIdleTime } from "../../functions/pool/sweep/idle-time.ts";
import { note, wish } from "./run-samples.ts";
import { over, startMs, type TestHandler } from "./test-pool.ts";

const isRegistered = "attribute_exists(#registeredAtMs)";
const isNotFinished = "attribute_not_exists(#finishedAtMs)";
const laneIsBehind = "(attribute_not_exists(#lane) OR #lane < :sequence)";

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

/** The very write of a batch, a second time. */
const repeated: (runId: string) => RunScene = (runId) => async (handler) => {
  await registerRun(handler, runId, wish);
  const sent: Parameters<Table["update"]>[] = [];
  const remembering: Table = {
    ...handler.table,
    update: (...call) => {
      sent.push(call);
      return handler.table.update(...call);
    },
  };
  await createBatchNotes(over(handler, remembering))(runId, note);
  return async (table) => {
    for (const call of sent) await table.update(...call);
  };
};

export const noLane = noteExpression("~x");
export const noLaneOfDefault = noteDefaultExpression("~x");
export const onePruned = pruneExpression([{ lane: "~x", sequence: 1 }]);

export const runScenes: readonly [UpdateExpression, clause: string, harm: string, RunScene][] = [
  [
    registerExpression,
    isNotFinished,
    "a late retry that revives a run",
    finished((h) => registerRun(h, "r1", wish)),
  ],
  [heartbeatExpression, isRegistered, "a run of heartbeats alone", unknown((h) => beatRun(h, "r1"))],
  [heartbeatExpression, isNotFinished, "a finished run that goes on", finished((h) => beatRun(h, "r1"))],
  [finishExpression, isRegistered, "a record of a run that never was", unknown((h) => markFinished(h, "r1"))],
  [noLane, isRegistered, "a run of batches alone", unknown((h) => createBatchNotes(h)("r1", note))],
  [
    noLane,
    isNotFinished,
    "totals that change after the end",
    finished((h) => createBatchNotes(h)("r1", note)),
  ],
  [noLane, laneIsBehind, "a batch counted twice", repeated("r1")],
  [
    noLaneOfDefault,
    isNotFinished,
    "totals that change after the end",
    finished((h) => createBatchNotes(h)("default", note), "default"),
  ],
  [noLaneOfDefault, laneIsBehind, "a batch counted twice", repeated("default")],
  [
    onePruned,
    "#lane0 = :lane0",
    "a lane removed that is in use again",
    async (handler) => {
      await registerRun(handler, "r1", wish);
      const noteBatch = createBatchNotes(handler);
      await noteBatch("r1", note);
      const [lane = ""] = Object.keys((await handler.table.get(runKey("r1"))) ?? {}).filter((c) =>
        c.startsWith("~"),
      );
      await noteBatch("r1", note);
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
