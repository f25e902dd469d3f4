import { describe, expect, it } from "vitest";
import { readPool } from "../../functions/pool/pool-view.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { drainSlot } from "../../functions/pool/slots/drain.ts";
import { emptySlot } from "../../functions/pool/slots/empty.ts";
import { releaseReady } from "../../functions/pool/slots/release.ts";
import { isOurTurn, mayTakeAgain, typicalWaitMs } from "../../functions/pool/turns.ts";
import { createMemoryTable } from "./memory-table.ts";
import { anna, present, readied, testHandler } from "./test-pool.ts";

describe("whose turn it is", () => {
  const waiter = { waitedMs: 0, typicalMs: 10_000, freeForMs: 0, pollMs: 1_000 };
  it.each([
    ["where nobody waits, a newcomer's", { ...waiter, typicalMs: 2_000 }, 1],
    ["in a crowd, hardly a newcomer's", waiter, 0],
    ["in a crowd, seldom that of one who came lately", { ...waiter, waitedMs: 6_500 }, 0.125],
    ["that of one who has waited longer than is usual", { ...waiter, waitedMs: 13_000 }, 1],
    ["anybody's, when nobody took the worker for two polls", { ...waiter, freeForMs: 2_000 }, 1],
    ["perhaps anybody's, after one poll", { ...waiter, freeForMs: 1_000 }, 0.5],
  ])("it is %s", (_, who, chance) => {
    expect(isOurTurn(who, Math.max(0, chance - 0.01))).toBe(chance > 0);
    expect(isOurTurn(who, Math.min(0.999, chance + 0.01))).toBe(chance >= 1);
  });
});

describe("a worker that was just given back", () => {
  const own = { freeForMs: 100, lookedForMs: 1_000, typicalMs: 0 };
  it.each([
    ["is taken again while nobody waits", own, true],
    ["is left to others where they wait", { ...own, typicalMs: 10_000 }, false],
    ["is left until the next look, when the last one was long ago", { ...own, lookedForMs: 5_000 }, false],
    [
      "is anybody's once nobody took it for two polls",
      { freeForMs: 2_000, lookedForMs: 5_000, typicalMs: 10_000 },
      true,
    ],
  ])("%s", (_, what, isTaken) => {
    expect(mayTakeAgain(what, 1_000)).toBe(isTaken);
  });
});

describe("the usual wait", () => {
  async function pool() {
    const handler = testHandler(createMemoryTable(), { slots: 3 });
    const typical = async (ms: number) => {
      handler.at(ms);
      return typicalWaitMs(await readPool(handler), handler.clock.nowMs());
    };
    return { handler, typical };
  }

  it("is what the holders of workers had waited, on average", async () => {
    const { handler, typical } = await pool();
    expect(await typical(0)).toBe(0);
    for (const [slot, waitedMs] of [4_000, 8_000].entries()) {
      await readied(handler, slot);
      present(await acquireSlot(handler, slot, { ...anna, waitedMs }));
    }
    expect(await typical(0)).toBe(6_000);
    expect(await typical(300_000)).toBe(6_000); // they work for long, and who comes will wait
  });

  it("is forgotten a minute after the worker was given back, and with the worker", async () => {
    const { handler, typical } = await pool();
    await readied(handler, 0);
    const lease = present(await acquireSlot(handler, 0, { ...anna, waitedMs: 9_000 }));
    present(await releaseReady(handler, lease));
    expect(await typical(59_000)).toBe(9_000);
    expect(await typical(61_000)).toBe(0);
    await emptySlot(handler, present(await drainSlot(handler.at(0), lease)));
    await readied(handler, 0);
    expect(present(await acquireSlot(handler, 0, anna)).waitedMs).toBe(0);
  });
});
