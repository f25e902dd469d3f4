/** One process whose clock is an hour ahead: what it wrote and left behind holds nobody up for an hour. */
import { describe, expect, it } from "vitest";
import { beginBatch } from "../../functions/pool/batches/begin-batch.ts";
import { readPool, waitingBatches } from "../../functions/pool/pool-view.ts";
import { shortTag } from "../../functions/pool/slot-row.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { claimSlot } from "../../functions/pool/slots/claim.ts";
import { drainSlot } from "../../functions/pool/slots/drain.ts";
import { extendLease } from "../../functions/pool/slots/extend.ts";
import { admitCreation } from "../../functions/pool/slots/pacing.ts";
import { publishWorker } from "../../functions/pool/slots/publish.ts";
import { signWaiting } from "../../functions/pool/waiting.ts";
import { addWorker, createSweepWorld, type SweepWorld } from "./sweep-world.ts";
import { access, anna, present } from "./test-pool.ts";

const hourMs = 3_600_000;

/** A process of the world whose clock is ahead. */
function fast(world: SweepWorld, aheadMs = hourMs) {
  const { clock } = world;
  return world.context({ clock: { ...clock, nowMs: () => clock.nowMs() + aheadMs } });
}

describe("the pace", () => {
  it("is kept by those whose clocks are right, whatever a fast one wrote", async () => {
    const world = createSweepWorld();
    await world.clock.run(admitCreation(fast(world)));
    expect(await world.clock.run(admitCreation(world.context()))).toBe(true);
    expect(await world.clock.run(admitCreation(world.context()))).toBe(false);
    await world.clock.pass(1_000);
    expect(await world.clock.run(admitCreation(world.context()))).toBe(true);
  });

  it("is believed as long as clocks differ by no more than they may", async () => {
    const world = createSweepWorld();
    await world.clock.run(admitCreation(fast(world, 4_000)));
    expect(await world.clock.run(admitCreation(world.context()))).toBe(false);
  });

  it("is not set back by a write that lands when others have created since", async () => {
    const world = createSweepWorld();
    const { table } = world.context();
    const late: (() => Promise<unknown>)[] = [];
    const slow: typeof table = {
      ...table,
      async update(...write) {
        late.push(() => table.update(...write));
        return { kind: "refused", retried: false };
      },
    };
    await world.clock.run(admitCreation(world.context({ table: slow })));
    await world.clock.pass(60_000);
    expect(await world.clock.run(admitCreation(world.context()))).toBe(true);
    for (const land of late) await world.clock.run(land());
    expect(await world.clock.run(admitCreation(world.context()))).toBe(false);
  });

  it("stops neither a batch that needs a worker nor the sweep", async () => {
    const world = createSweepWorld();
    await world.register("run", 3);
    await world.clock.run(admitCreation(fast(world)));
    expect((await world.clock.run(readPool(world.context()))).nextCreateAtMs).toBe(0);
    const beganAtMs = world.clock.nowMs();
    const lease = await world.clock.run(world.lease());
    expect(world.clock.nowMs() - beganAtMs).toBeLessThan(2_000);
    await world.clock.run(lease.release("healthy"));
    await world.clock.run(admitCreation(fast(world)));
    await world.sweep();
    expect(world.states()).toEqual(["ready", "ready", "ready"]);
  });
});

describe("a slot whose taker had a fast clock and died", () => {
  it.each([
    ["creating", (world: SweepWorld) => claimSlot(fast(world), 0, shortTag("run"))],
    [
      "leased",
      async (world: SweepWorld) => {
        await addWorker(world, 0);
        return acquireSlot(fast(world, 300_000), 0, anna);
      },
    ],
    ["draining", async (world: SweepWorld) => drainSlot(fast(world), await addWorker(world, 0))],
  ] as const)("while it was %s is free again within minutes", async (state, take) => {
    const world = createSweepWorld({ settings: { slots: 1 } });
    await world.register("run", 1);
    present(await world.clock.run(take(world)));
    expect(world.states()).toEqual([state]);
    await world.sweepFor(4, () => world.register("run", 1));
    expect(world.states()).toEqual(["ready"]);
  });

  it("keeps its worker as long as it lives and says so", async () => {
    const world = createSweepWorld({ settings: { slots: 1 } });
    await addWorker(world, 0);
    const held = present(await world.clock.run(acquireSlot(fast(world, 300_000), 0, anna)));
    await world.register("run", 1);
    for (let minute = 0; minute < 6; minute += 1) {
      await world.sweepFor(1, () => world.register("run", 1));
      present(await world.clock.run(extendLease(fast(world, 300_000), held)));
    }
    expect(world.slots()).toMatchObject([{ state: "leased", fence: held.fence }]);
    expect(world.cloud.killed).toEqual([]);
  });
});

describe("a worker that one with a fast clock published", () => {
  it("is renewed before its sandbox dies", async () => {
    const world = createSweepWorld({ settings: { slots: 1 } });
    await world.register("run", 1);
    const ahead = fast(world);
    const claim = present(await world.clock.run(claimSlot(ahead, 0, shortTag("run"))));
    const sandboxId = world.addSandbox({ slot: 0, generation: claim.generation, sandboxId: "w0" });
    const askedAtMs = ahead.clock.nowMs();
    await publishWorker(ahead, claim, { sandboxId, access, askedAtMs, maxAtMs: askedAtMs + 3_000_000 }, null);
    await world.sweepFor(15, () => world.register("run", 1));
    expect(world.starved).toEqual([]);
    expect(world.states()).toEqual(["ready"]);
  });
});

describe("a sign of waiting", () => {
  it("of a fast clock is believed for no longer than another's", async () => {
    const world = createSweepWorld();
    const ctx = world.context();
    const sign = { sinceMs: world.clock.nowMs(), runIsFull: false };
    await signWaiting(fast(world), anna, sign);
    const view = await readPool(ctx);
    expect(waitingBatches(ctx, view, world.clock.nowMs())).toEqual([]);
    await signWaiting(ctx, anna, sign);
    expect(waitingBatches(ctx, await readPool(ctx), world.clock.nowMs())).toHaveLength(1);
  });
});

describe("a batch's record", () => {
  it("of an attempt that died with a fast clock is another's at once", async () => {
    const world = createSweepWorld();
    const key = { batchId: "b", bodyHash: "h" };
    await beginBatch(fast(world), key);
    expect(await beginBatch(world.context(), key)).toMatchObject({ kind: "begun" });
  });

  it("stays with an attempt whose clock is ahead by no more than clocks may differ", async () => {
    const world = createSweepWorld();
    const key = { batchId: "b", bodyHash: "h" };
    await beginBatch(fast(world, 5_000), key);
    expect(await beginBatch(world.context(), key)).toEqual({ kind: "in_progress" });
  });
});
