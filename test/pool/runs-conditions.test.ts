/** Every clause of a run's writes matters: for each there is a state in which it alone refuses. */
import { describe, expect, it } from "vitest";
import type { Table, UpdateExpression } from "../../functions/pool/ports.ts";
import { wakeDefaultExpression } from "../../functions/pool/runs/enter.ts";
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
import { Fault } from "../../functions/rewards/faults.ts";
import { forgettingClause } from "./broken-table.ts";
import { createMemoryTable } from "./memory-table.ts";
import { note, wish } from "./runs-contract.ts";
import { over, startMs, type TestHandler, testHandler } from "./test-pool.ts";

const isRegistered = "attribute_exists(#registeredAtMs)";
const isNotFinished = "attribute_not_exists(#finishedAtMs)";
const laneIsBehind = "(attribute_not_exists(#lane) OR #lane < :sequence)";

/** Brings the table into the state; the write that must be refused there. */
type Scene = (handler: TestHandler) => Promise<(table: Table) => Promise<unknown>>;

const finished: (write: (handler: ReturnType<typeof over>) => Promise<unknown>, runId?: string) => Scene =
  (write, runId = "r1") =>
  async (handler) => {
    await registerRun(handler, runId, wish);
    await markFinished(handler, runId);
    return (table) => write(over(handler.at(1_000), table));
  };

const unknown: (write: (handler: ReturnType<typeof over>) => Promise<unknown>) => Scene =
  (write) => async (handler) => (table) =>
    write(over(handler, table));

/** The very write of a batch, a second time. */
const repeated: (runId: string) => Scene = (runId) => async (handler) => {
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

const noLane = noteExpression("~x");
const noLaneOfDefault = noteDefaultExpression("~x");
const onePruned = pruneExpression([{ lane: "~x", sequence: 1 }]);

const scenes: readonly [UpdateExpression, clause: string, harm: string, Scene][] = [
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

async function play(scene: Scene, mutate: (table: Table) => Table) {
  const table = createMemoryTable();
  const write = await scene(testHandler(table));
  const writesBefore = table.log.length;
  // Without the clause a row may come out that nobody can read.
  await write(mutate(table)).catch((error: unknown) => expect(error).toBeInstanceOf(Fault));
  return table.log.slice(writesBefore).map(({ verb }) => verb);
}

describe("without one clause", () => {
  it.each(
    scenes.map(([expression, clause, harm, scene]) => ({
      name: expression.name,
      clause,
      harm,
      expression,
      scene,
    })),
  )("$name, without «$clause»: $harm", async ({ expression, clause, scene }) => {
    const count = (verbs: string[]) => verbs.filter((verb) => verb === expression.name).length;
    const whole = count(await play(scene, (table) => table));
    const mutant = count(await play(scene, (table) => forgettingClause(table, expression, clause)));
    expect(mutant).toBe(whole + 1);
  });

  it("covers every clause of every expression", () => {
    const all = [
      registerExpression,
      heartbeatExpression,
      finishExpression,
      wakeDefaultExpression,
      noLane,
      noLaneOfDefault,
      onePruned,
      idleShareExpression,
      idleLedgerExpression,
    ];
    const clauses = all.flatMap(({ name, clauses }) => clauses.map((clause) => `${name}: ${clause}`));
    expect(scenes.map(([{ name }, clause]) => `${name}: ${clause}`).toSorted()).toEqual(clauses.toSorted());
  });
});
