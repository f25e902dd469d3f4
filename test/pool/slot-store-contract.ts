/** What the slots promise, over any implementation of the table. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { batchTagOf } from "../../functions/pool/batches/batch-tag.ts";
import { readPoolId } from "../../functions/pool/identity.ts";
import { createLeaseSource } from "../../functions/pool/lease-source.ts";
import { emptySlots, expiredWorkers, fitWorkers, keptFor, readPool } from "../../functions/pool/pool-view.ts";
import type { Table } from "../../functions/pool/ports.ts";
import { poolPartition, type SlotRow, slotKey } from "../../functions/pool/slot-row.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { claimSlot, unclaimSlot } from "../../functions/pool/slots/claim.ts";
import { drainSlot, expireSlot } from "../../functions/pool/slots/drain.ts";
import { emptySlot } from "../../functions/pool/slots/empty.ts";
import { extendLease } from "../../functions/pool/slots/extend.ts";
import { handOverSlot } from "../../functions/pool/slots/hand-over.ts";
import { admitCreation, pacingKey } from "../../functions/pool/slots/pacing.ts";
import { publishWorker } from "../../functions/pool/slots/publish.ts";
import { releaseDraining, releaseKept, releaseReady } from "../../functions/pool/slots/release.ts";
import { recordRenewal } from "../../functions/pool/slots/renew.ts";
import { revokeLease, takeOverSlot } from "../../functions/pool/slots/take-over.ts";
import { createFakeCloud } from "./fake-cloud.ts";
import { rowBytes } from "./memory-table.ts";
import {
  anna,
  ben,
  claimed,
  leased,
  newWorker,
  type OpenTable,
  present,
  readied,
  refused,
  slotIn,
  startMs,
  type TestHandler,
  testHandler,
} from "./test-pool.ts";

const keptForBen = { batchTag: ben.batchTag, untilMs: startMs + 700 };

export function describeSlotStore(name: string, open: () => Promise<OpenTable>): void {
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

    const row = async (slot: number): Promise<SlotRow | undefined> =>
      (await readPool(handler)).slots.find((found) => found.slot === slot);

    describe("races", () => {
      it("gives a free worker to exactly one of 200 acquirers, each time", async () => {
        await readied(handler, 0);
        const rivals = Array.from({ length: 200 }, () => testHandler(table));
        let fence = 1;
        for (let round = 0; round < 5; round += 1) {
          const answers = await Promise.all(rivals.map((rival) => acquireSlot(rival, 0, ben)));
          const winners = answers.filter((answer) => answer !== null);
          expect(winners.map((winner) => winner.fence)).toEqual([fence + 1]);
          fence += 1;
          present(await releaseReady(handler, present(winners[0])));
        }
      });

      it("never has more claims than slots", async () => {
        const rivals = Array.from({ length: 60 }, () => testHandler(table, { slots: 3 }));
        const claims = await Promise.all(
          rivals.map((rival, index) => claimSlot(rival, index % 3, anna.runTag)),
        );
        expect(claims.filter((claim) => claim !== null).map((claim) => claim.slot)).toHaveLength(3);
        expect(emptySlots(testHandler(table, { slots: 3 }), await readPool(handler))).toEqual([]);
      });

      it("lets exactly one of 50 take over an expired lease", async () => {
        const lost = await leased(handler, 0);
        const rivals = Array.from({ length: 50 }, () => testHandler(table).at(65_001));
        const answers = await Promise.all(rivals.map((rival) => takeOverSlot(rival, lost, ben)));
        expect(answers.filter((answer) => answer !== null).map((answer) => answer.fence)).toEqual([
          lost.fence + 1,
        ]);
      });

      it("admits creations at the pace of the table, whoever asks", async () => {
        const admitted: number[] = [];
        for (let ms = 0; ms < 3_000; ms += 100) {
          const rivals = Array.from({ length: 10 }, () => testHandler(table).at(ms));
          const answers = await Promise.all(rivals.map((rival) => admitCreation(rival)));
          admitted.push(...answers.filter((yes) => yes).map(() => ms));
        }
        expect(admitted).toEqual([0, 1_000, 2_000]);
      });

      it("names the pool once, whoever comes first", async () => {
        const ids = await Promise.all(
          Array.from({ length: 50 }, (_, index) => readPoolId(table, () => `pool-${index}`)),
        );
        expect(new Set(ids).size).toBe(1);
        expect(await readPoolId(table, () => "late")).toBe(ids[0]);
      });
    });

    describe("the life of a slot", () => {
      it("goes from empty over creating, leased and ready back to empty", async () => {
        const claim = await claimed(handler, 4);
        expect(claim).toMatchObject({
          state: "creating",
          fence: 1,
          generation: 1,
          createdForRun: "run-anna",
        });

        const made = newWorker(handler, 4);
        expect(await publishWorker(handler, claim, made, anna)).toMatchObject({
          state: "leased",
          fence: 1,
          sandboxId: made.sandboxId,
          access: made.access,
          leaseUntilMs: 1_800_000_060_000,
          ttlAtMs: 1_800_000_600_000,
          maxAtMs: 1_800_003_000_000,
          supervisorVersion: "v1",
          heldForRun: "run-anna",
          heldForBatch: "batch-a1",
        });
        expect(await extendLease(handler.at(20_000), claim)).toMatchObject({
          leaseUntilMs: 1_800_000_080_000,
        });

        const free = present(await releaseReady(handler.at(30_000), claim));
        expect(free).toMatchObject({ state: "ready", fence: 1, lastUsedAtMs: 1_800_000_030_000 });
        for (const word of ["owner", "leaseUntilMs", "heldForRun", "heldForBatch"] as const) {
          expect(free[word]).toBeUndefined();
        }

        const lease = present(await acquireSlot(handler, 4, ben));
        expect(lease).toMatchObject({ state: "leased", fence: 2, generation: 1, heldForBatch: "batch-b1" });
        expect(await releaseDraining(handler, lease)).toMatchObject({ state: "draining", fence: 2 });
        expect(await emptySlot(handler, lease)).toBe(true);
        expect(await row(4)).toEqual({ slot: 4, state: "empty", fence: 2, generation: 1 });

        expect(await claimed(handler, 4)).toMatchObject({ fence: 3, generation: 3 });
      });

      it("shows slots that were never used as empty, and those above a pool made smaller", async () => {
        await readied(handler, 3);
        const small = testHandler(table, { slots: 2 });
        const view = await readPool(small);
        expect(view.slots.map(({ slot, state }) => [slot, state])).toEqual([
          [0, "empty"],
          [1, "empty"],
          [3, "ready"],
        ]);
        expect(fitWorkers(small, view, small.clock.nowMs())).toEqual([]);
        expect(emptySlots(small, view).map(({ slot }) => slot)).toEqual([0, 1]);
      });

      it("keeps a row below 300 bytes, with both tokens of its sandbox", async () => {
        const long = testHandler(table, { supervisorVersion: "0123456789ab" }).at(1_234_567);
        const fence = { name: "age", update: "SET #f = :f", clauses: [], columns: { "#f": "f" } };
        await present(await emptySlot(long, await slotIn(long, "draining")));
        await table.update(slotKey(0), fence, { ":f": 999_999 });
        await leased(long, 0, { ...anna, batchTag: batchTagOf({ batchId: "b", attemptNumber: 9 }) });
        await admitCreation(long);
        await readPoolId(table, () => "0123456789abcdef");
        const rows = await table.query(poolPartition);
        const bytes = rows.map(rowBytes);
        console.log(`bytes of a leased slot's row: ${Math.max(...bytes)}`);
        expect(rows).toHaveLength(3);
        expect(Math.max(...bytes)).toBeLessThan(300);
      });

      it("reads back what it wrote, one partition and one prefix at a time", async () => {
        await readied(handler, 0);
        await readied(handler, 1);
        await admitCreation(handler);
        expect((await table.query(poolPartition, "S#")).map(({ sk }) => sk)).toEqual(["S#000", "S#001"]);
        expect(await table.query("another")).toEqual([]);
        expect(await table.get({ pk: poolPartition, sk: "S#009" })).toBeUndefined();
        expect((await readPool(handler)).nextCreateAtMs).toBe(1_800_000_001_000);
        expect(await table.get(pacingKey)).toMatchObject({ next: 1_800_000_001_000 });
      });
    });

    describe("fitness", () => {
      it.each([
        ["its sandbox dies too soon", { ttlMs: 130_000 }, {}, false],
        ["its sandbox lives just long enough", { ttlMs: 130_001 }, {}, true],
        ["it is due for replacement", { lifeMs: 130_000 }, {}, false],
        ["it runs another supervisor", {}, { supervisorVersion: "v2" }, false],
      ])("a worker is given out or not: %s", async (_, life, settings, isGiven) => {
        await readied(handler, 0, life);
        const other = testHandler(table, settings);
        const seen = fitWorkers(other, await readPool(other), other.clock.nowMs());
        expect(seen).toHaveLength(isGiven ? 1 : 0);
        expect((await acquireSlot(other, 0, ben)) !== null).toBe(isGiven);
      });

      it.each([
        ["its sandbox dies too soon", { ttlMs: 195_001 }, {}, false],
        ["its sandbox lives just long enough", { ttlMs: 195_002 }, {}, true],
        ["it is due for replacement", { lifeMs: 195_001 }, {}, false],
        ["it runs another supervisor", {}, { supervisorVersion: "v2" }, false],
      ])("an expired lease is taken over or not: %s", async (_, life, settings, isTaken) => {
        const lost = await leased(handler, 0, anna, life);
        const other = testHandler(table, settings).at(65_001);
        expect(expiredWorkers(other, await readPool(other), other.clock.nowMs())).toHaveLength(
          isTaken ? 1 : 0,
        );
        expect((await takeOverSlot(other, lost, ben)) !== null).toBe(isTaken);
      });

      it("leaves a lease alone until it has been over for as long as clocks may differ", async () => {
        const lease = await leased(handler, 0);
        const other = testHandler(table).at(65_000);
        expect(expiredWorkers(other, await readPool(other), other.clock.nowMs())).toEqual([]);
        expect(await takeOverSlot(other, lease, ben)).toBeNull();
        expect(await expireSlot(other, lease)).toBeNull();
        expect(await expireSlot(other.at(65_001), lease)).toMatchObject({ state: "draining", fence: 3 });
      });
    });

    describe("whoever was overtaken can't write any more", () => {
      const overtaken: [string, (stale: SlotRow) => Promise<unknown>, "leased" | "creating" | "draining"][] =
        [
          ["extend", (stale) => extendLease(handler, stale), "leased"],
          ["release as ready", (stale) => releaseReady(handler, stale), "leased"],
          ["release for another", (stale) => releaseKept(handler, stale, keptForBen), "leased"],
          ["hand over", (stale) => handOverSlot(handler, stale, ben), "leased"],
          ["release to drain", (stale) => releaseDraining(handler, stale), "leased"],
          [
            "publish a worker leased",
            (s) => publishWorker(handler, s, newWorker(handler, 7), anna),
            "creating",
          ],
          [
            "publish a worker free",
            (s) => publishWorker(handler, s, newWorker(handler, 7), null),
            "creating",
          ],
          ["unclaim", (stale) => unclaimSlot(handler, stale), "creating"],
          ["empty", (stale) => emptySlot(handler, stale), "draining"],
        ];

      it.each(overtaken)("%s", async (_, write, state) => {
        const stale = await slotIn(handler, state);
        const sweep = testHandler(table).at(200_000);
        const drain = present(await expireSlot(sweep, stale));
        expect(drain.fence).toBe(stale.fence + 1);
        expect(refused(await write(stale))).toBe(true);
        expect(await row(0)).toEqual(drain);

        // … nor in a later life of the slot, in the very state that it had.
        expect(await emptySlot(sweep, drain)).toBe(true);
        const later = await slotIn(sweep, state);
        expect(refused(await write(stale))).toBe(true);
        expect(await row(0)).toEqual(later);
      });

      it("after a take-over by another handler, which has the higher fence", async () => {
        const stale = await leased(handler, 0);
        const taken = present(await takeOverSlot(testHandler(table).at(66_000), stale, ben));
        expect(taken).toMatchObject({ state: "leased", fence: stale.fence + 1, heldForBatch: "batch-b1" });
        expect(await extendLease(handler.at(70_000), stale)).toBeNull();
        expect(await releaseReady(handler, stale)).toBeNull();
        expect(await row(0)).toEqual(taken);
      });

      it("after a hand-over to another holder, which is one write", async () => {
        const stale = await leased(handler, 0);
        const taken = present(await handOverSlot(handler.at(1_000), stale, { ...ben, waitedMs: 900 }));
        expect(taken).toMatchObject({
          ...{ state: "leased", fence: stale.fence + 1, heldForRun: ben.runTag, heldForBatch: ben.batchTag },
          ...{ leaseUntilMs: startMs + 61_000, lastUsedAtMs: startMs + 1_000, waitedMs: 900 },
        });
        expect(await extendLease(handler, stale)).toBeNull();
        expect(await revokeLease(handler, stale, ben)).toBeNull();
        expect(await releaseReady(handler, stale)).toBeNull();
        expect(await row(0)).toEqual(taken);
      });

      it("after a revocation, which does not wait for the lease's end", async () => {
        const stale = await leased(handler, 0);
        const revoked = present(await revokeLease(testHandler(table).at(1), stale, ben));
        expect(revoked.fence).toBe(stale.fence + 1);
        expect(await extendLease(handler, stale)).toBeNull();
        expect(await revokeLease(handler, stale, ben)).toBeNull();
      });

      it("an expired lease that nobody took is extended all the same", async () => {
        const lease = await leased(handler, 0);
        expect(await extendLease(handler.at(500_000), lease)).toMatchObject({
          leaseUntilMs: 1_800_000_560_000,
        });
        expect(await takeOverSlot(testHandler(table).at(500_001), lease, ben)).toBeNull();
      });
    });

    it("costs two writes and no read to lease a worker again and to give it back", async () => {
      const calls = { update: 0, get: 0, query: 0 };
      const count = <T>(call: keyof typeof calls, run: () => T) => {
        calls[call] += 1;
        return run();
      };
      const counting: Table = {
        get: (...call) => count("get", () => table.get(...call)),
        query: (...call) => count("query", () => table.query(...call)),
        update: (...call) => count("update", () => table.update(...call)),
      };
      const { lease } = leasingContainer(counting);
      await (await lease()).release("healthy");
      const before = { ...calls };
      for (let round = 0; round < 20; round += 1) await (await lease()).release("healthy");
      const writes = (calls.update - before.update) / 20;
      console.log(`writes a leased worker with affinity: ${writes}`);
      expect(writes).toBeLessThanOrEqual(2);
      expect(calls).toMatchObject({ get: before.get, query: before.query });
    });

    describe("a worker that is kept for a batch", () => {
      const keptAtMs = async (ms: number) => {
        const view = await readPool(handler);
        return keptFor(view, present(view.slots[0]), startMs + ms);
      };

      it("is so for a moment, until it comes, or when clocks differ too much to tell", async () => {
        present(await releaseKept(handler, await leased(handler, 0), keptForBen));
        expect(await keptAtMs(0)).toBe(ben.batchTag);
        expect(await keptAtMs(699)).toBe(ben.batchTag);
        expect(await keptAtMs(700)).toBeNull();
        expect(await keptAtMs(-701)).toBeNull();
        await leased(handler, 1, ben);
        expect(await keptAtMs(0)).toBeNull();
      });

      it("is as free as any to a handler that knows nothing of it", async () => {
        present(await releaseKept(handler, await leased(handler, 0, ben), keptForBen));
        const taken = present(await acquireSlot(handler, 0, anna));
        expect(taken).toMatchObject({ state: "leased", heldForBatch: anna.batchTag });
        expect(await releaseReady(handler, taken)).not.toHaveProperty("heldForBatch");
        expect(await keptAtMs(0)).toBeNull();
      });

      it("keeps its row below 300 bytes", async () => {
        await releaseKept(handler, await leased(handler, 0), keptForBen);
        const stored = present(await table.get(slotKey(0)));
        expect(rowBytes(stored)).toBeLessThan(300);
      });
    });

    it("renews only the sandbox it was told, and only while it serves", async () => {
      const free = await readied(handler, 0);
      const sandboxId = present(free.sandboxId);
      expect(await recordRenewal(handler, 0, "another", 1_800_001_000_000)).toBeNull();
      expect(await recordRenewal(handler, 0, sandboxId, 1_800_001_000_000)).toMatchObject({
        state: "ready",
        ttlAtMs: 1_800_001_000_000,
      });
      present(await drainSlot(handler, free));
      expect(await recordRenewal(handler, 0, sandboxId, 1_800_002_000_000)).toBeNull();
    });

    it("refuses to take a row that it can't read for an empty slot", async () => {
      await claimed(handler, 0);
      const unreadable = {
        name: "spoil",
        update: "SET #state = :odd",
        clauses: [],
        columns: { "#state": "st" },
      };
      await table.update(slotKey(0), unreadable, { ":odd": "paused" });
      await expect(readPool(handler)).rejects.toMatchObject({ code: "misconfigured" });
    });
  });
}

/** A container whose clock stands still: nothing waits in it, and nothing is extended. */
function leasingContainer(table: Table) {
  const clock = { nowMs: () => startMs, sleep: () => new Promise<void>(() => {}) };
  const { sandboxes, workers } = createFakeCloud({ ...clock, sleep: async () => {} }, 0);
  const context = { ...testHandler(table), clock, sandboxes, workers };
  const source = createLeaseSource({ ...context, random: () => 0.5, poolId: async () => "pool-1" });
  const batch = source.forBatch({ runId: "run", batchId: "batch" });
  const signal = new AbortController().signal;
  return { lease: async () => present(await batch.acquire({ deadlineAtMs: startMs + 1, signal })) };
}
