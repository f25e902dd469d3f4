/** What every verb promises when the answer to its write is lost, over any implementation of the table. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Table } from "../../functions/pool/ports.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { claimSlot, unclaimSlot } from "../../functions/pool/slots/claim.ts";
import { drainSlot, expireSlot } from "../../functions/pool/slots/drain.ts";
import { emptySlot } from "../../functions/pool/slots/empty.ts";
import { extendLease } from "../../functions/pool/slots/extend.ts";
import { handOverSlot } from "../../functions/pool/slots/hand-over.ts";
import { admitCreation } from "../../functions/pool/slots/pacing.ts";
import { publishWorker } from "../../functions/pool/slots/publish.ts";
import { releaseDraining, releaseKept, releaseReady } from "../../functions/pool/slots/release.ts";
import { recordRenewal } from "../../functions/pool/slots/renew.ts";
import { revokeLease, takeOverSlot } from "../../functions/pool/slots/take-over.ts";
import type { SlotContext } from "../../functions/pool/slots/write.ts";
import { losingAnswers } from "./broken-table.ts";
import {
  anna,
  ben,
  claimed,
  leased,
  newWorker,
  type OpenTable,
  over,
  readied,
  refused,
  slotIn,
  startMs,
  type TestHandler,
  testHandler,
} from "./test-pool.ts";

export function describeLostAnswers(name: string, open: () => Promise<OpenTable>): void {
  describe(`an answer that was lost, over ${name}`, () => {
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

    type Won = unknown;
    const verbs: [string, (ctx: SlotContext) => Promise<Won>][] = [
      ["admit creation", (ctx) => admitCreation(ctx)],
      ["claim", (ctx) => claimSlot(ctx, 0, anna.runTag)],
      ["unclaim", async (ctx) => unclaimSlot(ctx, await claimed(handler, 0))],
      [
        "publish leased",
        async (ctx) => publishWorker(ctx, await claimed(handler, 0), newWorker(ctx, 0), anna),
      ],
      [
        "publish ready",
        async (ctx) => publishWorker(ctx, await claimed(handler, 0), newWorker(ctx, 0), null),
      ],
      ["acquire", async (ctx) => readied(handler, 0).then(() => acquireSlot(ctx, 0, anna))],
      ["extend", async (ctx) => extendLease(ctx, await leased(handler, 0))],
      ["release ready", async (ctx) => releaseReady(ctx, await leased(handler, 0))],
      [
        "release kept",
        async (ctx) =>
          releaseKept(ctx, await leased(handler, 0), { batchTag: ben.batchTag, untilMs: startMs + 700 }),
      ],
      ["hand over", async (ctx) => handOverSlot(ctx, await leased(handler, 0), ben)],
      ["release draining", async (ctx) => releaseDraining(ctx, await leased(handler, 0))],
      [
        "take over",
        async (ctx) => {
          const lost = await leased(handler, 0);
          return takeOverSlot({ ...ctx, clock: testHandler(table).at(70_000).clock }, lost, ben);
        },
      ],
      ["revoke", async (ctx) => revokeLease(ctx, await leased(handler, 0), ben)],
      ["drain", async (ctx) => drainSlot(ctx, await readied(handler, 0))],
      [
        "expire",
        async (ctx) => {
          const lost = await leased(handler, 0);
          return expireSlot({ ...ctx, clock: testHandler(table).at(70_000).clock }, lost);
        },
      ],
      ["empty", async (ctx) => emptySlot(ctx, await slotIn(handler, "draining"))],
      [
        "renew",
        async (ctx) =>
          recordRenewal(ctx, 0, (await readied(handler, 0)).sandboxId ?? "", ctx.clock.nowMs() + 600_000),
      ],
    ];

    it.each(verbs)("does not make %s believe that it lost", async (verb, write) => {
      const lossy = over(
        handler,
        losingAnswers(table, (name) => name === verb),
      );
      expect(refused(await write(lossy))).toBe(false);
    });

    it("does not make a loser believe that it won", async () => {
      await leased(handler, 0, anna);
      const lossy = over(
        testHandler(table),
        losingAnswers(table, () => true),
      );
      expect(await acquireSlot(lossy, 0, ben)).toBeNull();
      expect(await claimSlot(lossy, 0, ben.runTag)).toBeNull();
      expect(await unclaimSlot(lossy, { slot: 0, fence: 1 })).toBe(false);
    });
  });
}
