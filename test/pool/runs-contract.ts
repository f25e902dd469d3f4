/** What runs promise, over any implementation of the table. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { enterRun } from "../../functions/pool/runs/enter.ts";
import { markFinished } from "../../functions/pool/runs/finish.ts";
import { foldLedger, isSettled } from "../../functions/pool/runs/fold-ledger.ts";
import { beatRun } from "../../functions/pool/runs/heartbeat.ts";
import { addIdleShare } from "../../functions/pool/runs/idle-share.ts";
import { writeBatchEntry, writeCostEntry } from "../../functions/pool/runs/ledger.ts";
import { pruneLanes } from "../../functions/pool/runs/prune-lanes.ts";
import { getRun, getRunRow, listRuns } from "../../functions/pool/runs/read.ts";
import { registerRun } from "../../functions/pool/runs/register.ts";
import { runState } from "../../functions/pool/runs/run-row.ts";
import { createBatchNotes } from "./batch-notes.ts";
import { failing, losingAnswers } from "./broken-table.ts";
import { addThroughLane, note, noteAt, wish } from "./run-samples.ts";
import { type OpenTable, over, present, startMs, type TestHandler, testHandler } from "./test-pool.ts";

export { note, wish };

export function describeRuns(name: string, open: () => Promise<OpenTable>): void {
  describe(name, () => {
    let opened: OpenTable;
    let table: Table;
    let handler: TestHandler;

    beforeAll(async () => {
      opened = await open();
    });
    afterAll(() => opened.close());
    beforeEach(async () => {
      table = await opened.fresh();
      handler = testHandler(table);
    });

    const runNow = async (runId = "r1") => present(await getRun(handler, runId));

    describe("registering", () => {
      it("makes one run of sixteen ranks that say so at once, with the workers asked for", async () => {
        const ranks = Array.from({ length: 16 }, () => testHandler(table));
        const answers = await Promise.all(ranks.map((rank) => registerRun(rank, "r1", wish)));
        expect(answers.filter((answer) => answer.kind === "registered" && answer.isNew)).toHaveLength(1);
        const runs = await listRuns(handler);
        expect(runs).toMatchObject([{ runId: "r1", ...wish, registeredAtMs: startMs, beatAtMs: startMs }]);
      });

      it("replaces the wish when it is said again, and keeps what was counted", async () => {
        await registerRun(handler, "r1", wish);
        await createBatchNotes(handler)("r1", note);
        handler.at(10_000);
        const again = await registerRun(handler, "r1", { name: "other", workers: 1, metadata: {} });
        expect(again).toMatchObject({ kind: "registered", isNew: false });
        expect(await runNow()).toMatchObject({
          name: "other",
          workers: 1,
          metadata: {},
          registeredAtMs: startMs,
          beatAtMs: startMs + 10_000,
          totals: { batches: 1 },
        });
      });

      it("does not bring a finished run back", async () => {
        await registerRun(handler, "r1", wish);
        await markFinished(handler, "r1");
        expect(await registerRun(handler.at(1_000), "r1", wish)).toEqual({ kind: "run_finished" });
        expect((await runNow()).finishedAtMs).toBe(startMs);
      });
    });

    describe("living", () => {
      it.each([
        [0, "active"],
        [299_999, "active"],
        [300_000, "expired"],
        [7_000_000, "expired"],
      ] as const)("%i ms after its last sign of life it is %s", async (ms, state) => {
        await registerRun(handler, "r1", wish);
        expect(runState(await runNow(), startMs + ms)).toBe(state);
      });

      it("goes on with each heartbeat, and lives again with one that came late", async () => {
        await registerRun(handler, "r1", wish);
        expect(await beatRun(handler.at(200_000), "r1")).toMatchObject({ kind: "alive" });
        expect(runState(await runNow(), startMs + 499_999)).toBe("active");
        expect(runState(await runNow(), startMs + 500_000)).toBe("expired");
        expect(await beatRun(handler.at(900_000), "r1")).toMatchObject({ kind: "alive" });
        expect(runState(await runNow(), startMs + 1_000_000)).toBe("active");
      });

      it("is refused to a run that nobody registered, and to a finished one", async () => {
        expect(await beatRun(handler, "r1")).toEqual({ kind: "run_not_found" });
        expect(await getRun(handler, "r1")).toBeNull();
        await registerRun(handler, "r1", wish);
        await markFinished(handler, "r1");
        expect(await beatRun(handler, "r1")).toEqual({ kind: "run_finished" });
      });

      it("is forgotten seven days after its last sign of life, though nothing was deleted", async () => {
        await registerRun(handler, "r1", wish);
        expect(await getRun(handler.at(7 * 86_400_000 - 1), "r1")).not.toBeNull();
        expect(await getRun(handler.at(7 * 86_400_000), "r1")).toBeNull();
        expect(await listRuns(handler)).toEqual([]);
      });
    });

    describe("finishing", () => {
      it("is said once: the second time changes nothing", async () => {
        await registerRun(handler, "r1", wish);
        const first = await markFinished(handler.at(5_000), "r1");
        const second = await markFinished(handler.at(9_000), "r1");
        expect(first?.finishedAtMs).toBe(startMs + 5_000);
        expect(second).toMatchObject({ finishedAtMs: startMs + 5_000, totals: first?.totals });
      });

      it("knows no run that nobody registered", async () => {
        expect(await markFinished(handler, "r1")).toBeNull();
        expect(await table.query("runs")).toEqual([]);
      });
    });

    describe("beginning a batch", () => {
      it("takes one read, and wakes a run that is near its end", async () => {
        await registerRun(handler, "r1", wish);
        expect(await enterRun(handler.at(100_000), "r1")).toMatchObject({ kind: "entered" });
        expect((await runNow()).beatAtMs).toBe(startMs);
        expect(await enterRun(handler.at(200_000), "r1")).toMatchObject({ kind: "entered" });
        expect((await runNow()).beatAtMs).toBe(startMs + 200_000);
      });

      it.each(["r1", "default"])(
        "of %s takes one read and a write in two minutes, also where no sweep writes the row",
        async (runId) => {
          if (runId === "r1") await registerRun(handler, runId, wish);
          const asked: string[] = [];
          const counting = failing(table, (operation) => {
            asked.push(operation);
            return "no";
          });
          const times = (what: string) => asked.filter((each) => each === what).length;
          for (let batch = 0; batch < 60; batch += 1) {
            handler.at(batch * 20_000);
            const entry = await enterRun(over(handler, counting), runId);
            expect(entry).toMatchObject({ kind: "entered" });
            await noteAt(handler, runId, `b${batch}`);
          }
          expect(times("query")).toBe(0);
          expect(times("get")).toBe(60);
          expect(asked.length - 60).toBeLessThanOrEqual(1_200 / 120);
        },
      );

      it("is refused for a run that nobody registered, and for a finished one", async () => {
        expect(await enterRun(handler, "r1")).toEqual({ kind: "run_not_found" });
        await registerRun(handler, "r1", wish);
        await markFinished(handler, "r1");
        expect(await enterRun(handler, "r1")).toEqual({ kind: "run_finished" });
      });

      it("makes the default run, with two workers, and brings it back whatever became of it", async () => {
        const made = await enterRun(handler, "default");
        expect(made).toMatchObject({ kind: "entered", run: { name: "default", workers: 2 } });
        await createBatchNotes(handler)("default", note);
        const back = await enterRun(handler.at(900_000), "default");
        expect(back).toMatchObject({ run: { beatAtMs: startMs + 900_000 } });
        expect((await runNow("default")).totals.batches).toBe(1);
        await markFinished(handler, "default");
        const again = await enterRun(handler.at(950_000), "default");
        expect(again.kind === "entered" && runState(again.run, startMs + 950_000)).toBe("active");
      });

      it("makes one default run of many first batches", async () => {
        const handlers = Array.from({ length: 20 }, () => testHandler(table));
        await Promise.all(handlers.map((each) => enterRun(each, "default")));
        expect(await listRuns(handler)).toHaveLength(1);
      });
    });

    describe("noting a batch", () => {
      it("adds it to the totals, and is a sign of life", async () => {
        await registerRun(handler, "r1", wish);
        const noteBatch = createBatchNotes(handler.at(1_000));
        await noteBatch("r1", note);
        const noted = await noteBatch("r1", { ...note, verdicts: { signaled: 2 }, busyMs: 500 });
        expect(noted.kind).toBe("noted");
        const run = await runNow();
        expect(run.beatAtMs).toBe(startMs + 1_000);
        expect(run.totals).toEqual({
          batches: 2,
          samples: 32,
          verdicts: {
            passed: 30,
            wrong_output: 5,
            runtime_error: 0,
            signaled: 2,
            time_limit: 1,
            memory_limit: 0,
            output_limit: 0,
          },
          faults: 2,
          retries: 4,
          workersCreated: 2,
          busyMs: 5_000,
          idleMs: 0,
          startMs: 0,
        });
      });

      it("tells the worker time since the batch before, idle time too", async () => {
        await registerRun(handler, "r1", wish);
        const noteBatch = createBatchNotes(handler);
        const since = async (busyMs: number) => {
          const noted = await noteBatch("r1", { ...note, busyMs });
          return noted.kind === "noted" ? noted.sincePreviousMs : null;
        };
        expect(await since(1_000)).toBe(1_000);
        await addIdleShare(handler, "r1", 60_000, startMs + 60_000);
        await addIdleShare(handler, "r1", 40_000, startMs + 120_000);
        expect(await since(2_000)).toBe(102_000);
        expect(await since(3_000)).toBe(3_000);
      });

      it("loses and doubles none of many at once, of several containers", async () => {
        await registerRun(handler, "r1", wish);
        const containers = Array.from({ length: 5 }, () => createBatchNotes(testHandler(table)));
        await Promise.all(
          containers.flatMap((noteBatch) => Array.from({ length: 8 }, () => noteBatch("r1", note))),
        );
        expect((await runNow()).totals).toMatchObject({ batches: 40, samples: 640, busyMs: 180_000 });
      });

      it("counts once when its answer was lost, whoever wrote in between", async () => {
        await registerRun(handler, "r1", wish);
        const others = createBatchNotes(testHandler(table));
        let lost = 0;
        const lossy: Table = {
          ...table,
          async update(key, expression, values) {
            const first = await table.update(key, expression, values);
            if (expression.name !== "note batch" || first.kind === "refused") return first;
            lost += 1;
            for (let times = 0; times < 3; times += 1) await others("r1", note);
            const second = await table.update(key, expression, values);
            return second.kind === "refused" ? { ...second, retried: true } : second;
          },
        };
        const noteBatch = createBatchNotes(over(handler, lossy));
        expect(await noteBatch("r1", note)).toMatchObject({ kind: "noted" });
        expect(await noteBatch("r1", note)).toMatchObject({ kind: "noted" });
        expect(lost).toBe(2);
        expect((await runNow()).totals.batches).toBe(8);
      });

      it("counts once when its first attempt comes late, after the next batch", async () => {
        await registerRun(handler, "r1", wish);
        const sent: Parameters<Table["update"]>[] = [];
        const remembering: Table = {
          ...table,
          update: (...call) => {
            sent.push(call);
            return table.update(...call);
          },
        };
        const noteBatch = createBatchNotes(over(handler, remembering));
        await noteBatch("r1", note);
        await noteBatch("r1", note);
        for (const call of sent) await table.update(...call);
        expect((await runNow()).totals.batches).toBe(2);
      });

      it("is refused for a run that nobody registered, and for a finished one, whose totals stay", async () => {
        const noteBatch = createBatchNotes(handler);
        expect(await noteBatch("r1", note)).toEqual({ kind: "run_not_found" });
        expect(await getRun(handler, "r1")).toBeNull();
        await registerRun(handler, "r1", wish);
        await markFinished(handler, "r1");
        expect(await noteBatch("r1", note)).toEqual({ kind: "run_finished" });
        expect(await addIdleShare(handler, "r1", 1_000, startMs)).toBe(false);
        expect((await runNow()).totals).toMatchObject({ batches: 0, idleMs: 0 });
      });

      it("makes the default run, and wakes it when it had expired", async () => {
        const noteBatch = createBatchNotes(handler);
        expect(await noteBatch("default", note)).toMatchObject({ kind: "noted" });
        expect(runState(await runNow("default"), startMs + 400_000)).toBe("expired");
        await noteBatch("default", note).then(() => handler.at(400_000));
        await noteBatch("default", note);
        expect(runState(await runNow("default"), startMs + 400_000)).toBe("active");
        expect((await runNow("default")).totals.batches).toBe(3);
      });

      it("tells time that nobody told once, to one of those who ask at once", async () => {
        await registerRun(handler, "r1", wish);
        await addIdleShare(handler, "r1", 60_000, startMs + 60_000);
        const containers = Array.from({ length: 6 }, () => createBatchNotes(testHandler(table)));
        const noted = await Promise.all(
          containers.map((noteBatch) => noteBatch("r1", { ...note, busyMs: 1_000 })),
        );
        const told = noted.map((each) => (each.kind === "noted" ? each.sincePreviousMs : 0));
        expect(told.toSorted((a, b) => a - b)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000, 61_000]);
      });
    });

    describe("the ledger", () => {
      const totalsNow = async () => (await runNow()).totals;
      const rowNow = async () => present(await getRunRow(handler, "r1"));
      const once = { batches: 1, samples: 16, faults: 1, retries: 2, workersCreated: 1, busyMs: 4_500 };

      it("has one row per attempt, however often and in whatever order its writes arrive", async () => {
        await registerRun(handler, "r1", wish);
        const at = await noteAt(handler, "r1", "b1");
        await writeCostEntry(handler, at, note);
        await writeBatchEntry(handler, at, note);
        await writeCostEntry(handler, at, note);
        expect(await totalsNow()).toMatchObject(once);
        expect(await table.query("L#r1")).toHaveLength(1);
      });

      it("counts what a failed attempt cost beside the result of another", async () => {
        await registerRun(handler, "r1", wish);
        const at = { runId: "r1", place: startMs, id: "b1#1" };
        await writeCostEntry(handler, at, { workersCreated: 2, busyMs: 1_000 });
        await noteAt(handler, "r1", "b1#2");
        expect(await totalsNow()).toMatchObject({ ...once, workersCreated: 3, busyMs: 5_500 });
      });

      it("is folded once it is old, and sums are the same before, after and in between", async () => {
        await registerRun(handler, "r1", wish);
        for (let batch = 0; batch < 40; batch += 1) {
          await noteAt(handler.at(batch * 60_000), "r1", `b${batch}`);
          await addThroughLane(handler, "r1", `~c${batch % 3}`, startMs + batch * 60_000); // a former version's
        }
        handler.at(2_400_000);
        const sum = { batches: 80, samples: 1_280, busyMs: 360_000, workersCreated: 40 };
        expect(await totalsNow()).toMatchObject(sum);
        const before = await rowNow();
        await foldLedger(handler, before);
        expect((await rowNow()).totals.batches).toBe(61); // 0 to 20 minutes
        expect(await totalsNow()).toMatchObject(sum);
        await foldLedger(handler, before); // another pass, that had read the same
        await foldLedger(handler, await rowNow());
        expect(await totalsNow()).toMatchObject(sum);
        expect((await listRuns(handler)).map(({ totals }) => totals)).toEqual([await totalsNow()]);
      });

      it("takes no batch a second time that is written again after it was folded", async () => {
        await registerRun(handler, "r1", wish);
        const at = await noteAt(handler, "r1", "b1");
        await foldLedger(handler.at(3_000_000), await rowNow());
        expect((await rowNow()).totals.batches).toBe(1);
        await writeBatchEntry(handler, at, note);
        expect(await totalsNow()).toMatchObject(once);
        await foldLedger(handler.at(6_000_000), await rowNow());
        expect(await totalsNow()).toMatchObject(once);
      });

      it("shows one sum to who reads while it is folded", async () => {
        await registerRun(handler, "r1", wish);
        for (let batch = 0; batch < 8; batch += 1) await noteAt(handler, "r1", `b${batch}`);
        handler.at(3_000_000);
        const row = await rowNow();
        const racing: Table = {
          ...table,
          async query(...call) {
            if (call[0] === "L#r1") await foldLedger(handler, row);
            return table.query(...call);
          },
        };
        expect(present(await getRun(over(handler, racing), "r1")).totals).toMatchObject({ batches: 8 });
        expect(await totalsNow()).toMatchObject({ batches: 8 });
      });

      it("puts a batch of a slow clock behind what was folded", async () => {
        await registerRun(handler, "r1", wish);
        await noteAt(handler, "r1", "b1");
        await foldLedger(handler.at(5_000_000), await rowNow());
        await beatRun(handler, "r1");
        await createBatchNotes(handler.at(0))("r1", note);
        expect(await totalsNow()).toMatchObject({ batches: 2 });
        await foldLedger(handler.at(9_000_000), await rowNow());
        expect(await totalsNow()).toMatchObject({ batches: 2 });
      });

      it("is asked no more for a run that is long over", async () => {
        await registerRun(handler, "r1", wish);
        await noteAt(handler.at(1_000), "r1", "b1");
        await markFinished(handler.at(2_000), "r1");
        await foldLedger(handler.at(2_399_999), await rowNow());
        expect(isSettled(await rowNow())).toBe(false);
        await foldLedger(handler.at(2_400_000), await rowNow());
        expect(isSettled(await rowNow())).toBe(true);
        const asked: string[] = [];
        const watched: Table = {
          ...table,
          query: (...call) => {
            asked.push(call[0]);
            return table.query(...call);
          },
        };
        expect((await listRuns(over(handler, watched)))[0]?.totals).toMatchObject(once);
        expect(asked).toEqual(["runs"]);
      });

      it("keeps a run alive for exactly its life after the last batch, and the sweep writes it into the row", async () => {
        await registerRun(handler, "r1", wish);
        await createBatchNotes(handler.at(140_000))("r1", note);
        expect((await rowNow()).beatAtMs).toBe(startMs);
        expect(runState(await runNow(), startMs + 439_999)).toBe("active");
        expect(runState(await runNow(), startMs + 440_000)).toBe("expired");
        await foldLedger(handler.at(200_000), await rowNow());
        expect((await rowNow()).beatAtMs).toBe(startMs + 140_000);
      });

      it("brings a sign of life back that a fast clock left", async () => {
        await registerRun(handler.at(3_600_000), "r1", wish);
        await foldLedger(handler.at(0), await rowNow());
        expect(runState(await rowNow(), startMs + 300_000)).toBe("expired");
        await beatRun(handler.at(10_000), "r1");
        await noteAt(handler.at(3_600_000), "r1", "b1");
        await foldLedger(handler.at(20_000), await rowNow());
        expect(runState(await rowNow(), startMs + 320_000)).toBe("expired");
      });
    });

    it("lanes of a former version's containers are dropped an hour after their last write", async () => {
      await registerRun(handler, "r1", wish);
      await addThroughLane(handler, "r1", "~old.0", startMs);
      await addThroughLane(handler, "r1", "~old.1", startMs);
      await addThroughLane(handler, "r1", "~new.0", startMs + 4_000_000);
      await pruneLanes(handler, await runNow(), startMs + 3_600_000);
      expect(Object.keys((await runNow()).lanes)).toHaveLength(3);
      await pruneLanes(handler, await runNow(), startMs + 3_700_000);
      expect(Object.values((await runNow()).lanes)).toEqual([startMs + 4_000_000]);
    });

    it("an idle share is added once, however often it is said", async () => {
      await registerRun(handler, "r1", wish);
      const lossy = losingAnswers(table, () => true);
      expect(await addIdleShare(over(handler, lossy), "r1", 1_000, startMs + 1)).toBe(true);
      expect(await addIdleShare(handler, "r1", 1_000, startMs + 1)).toBe(false);
      expect((await runNow()).totals.idleMs).toBe(1_000);
    });
  });
}
