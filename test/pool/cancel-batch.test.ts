/** Cancelling a batch, by somebody who may die at any point. */
import { describe, expect, it } from "vitest";
import { batchTagOf } from "../../functions/pool/batches/batch-tag.ts";
import { beginBatch } from "../../functions/pool/batches/begin-batch.ts";
import { type CancelContext, cancelBatch } from "../../functions/pool/batches/cancel-batch.ts";
import { endBatch } from "../../functions/pool/batches/end-batch.ts";
import { shortTag } from "../../functions/pool/slot-row.ts";
import { acquireSlot } from "../../functions/pool/slots/acquire.ts";
import { addWorker, createSweepWorld, dyingAt, type SweepWorld } from "./sweep-world.ts";
import { present } from "./test-pool.ts";

const batchId = "batch-1";
const holder = { runTag: shortTag("run"), batchTag: shortTag(batchId) };

/** Two workers of the batch at work, one of another batch, one free. */
async function worldAtWork(): Promise<{ world: SweepWorld; running: Set<string> }> {
  const world = createSweepWorld({ settings: { slots: 4 } });
  await beginBatch(world.context(), { batchId, bodyHash: "body" });
  const running = new Set<string>();
  for (const slot of [0, 1]) running.add((await addWorker(world, slot, holder)).sandboxId ?? "");
  await addWorker(world, 2, { ...holder, batchTag: shortTag("batch-2") });
  await addWorker(world, 3);
  return { world, running };
}

/** Cancels, and dies at that call; each supervisor or none says that it is clean. */
function canceller(world: SweepWorld, running: Set<string>, at: number, isClean: boolean) {
  const mortal = dyingAt(world.context(), at, "after");
  const stop: CancelContext["stopper"]["stop"] = async ({ sandboxId }) => {
    await mortal.sandboxes.renew(sandboxId, 600_000); // a call like any other
    if (!isClean) throw new Error("no answer");
    running.delete(sandboxId);
  };
  const ctx = { ...mortal, stopper: { stop } };
  return { calls: mortal.calls, cancelled: cancelBatch(ctx, batchId) };
}

/** Programs of the batch that still run: on workers that were not stopped, and exist. */
function stillRunning(world: SweepWorld, running: Set<string>): string[] {
  return [...running].filter((sandboxId) => world.cloud.alive.has(sandboxId));
}

describe("cancelling a batch", () => {
  it.each([
    ["its supervisors say that they are clean", true, ["leased", "ready", "ready", "ready"]],
    ["its supervisors don't answer", false, ["empty", "empty", "leased", "ready"]],
  ])(
    "stops its workers and no others when %s, wherever who cancelled first has died",
    async (_, isClean, states) => {
      const whole = await worldAtWork();
      const first = canceller(whole.world, whole.running, Number.POSITIVE_INFINITY, isClean);
      expect(await whole.world.clock.run(first.cancelled)).toEqual({ kind: "cancelled", stopped: 2 });
      expect(whole.world.states()).toEqual(states);
      expect(first.calls()).toBeGreaterThan(8);

      for (let at = 1; at <= first.calls(); at += 1) {
        const { world, running } = await worldAtWork();
        canceller(world, running, at, isClean).cancelled.catch(() => {});
        await world.clock.pass(1_000);
        const again = canceller(world, running, Number.POSITIVE_INFINITY, isClean);
        expect(await world.clock.run(again.cancelled)).toMatchObject({ kind: "cancelled" });
        expect(stillRunning(world, running)).toEqual([]);
        expect(world.states()).toEqual(states);
      }
    },
  );

  it("says each time that it can't, while a worker neither answers nor can be killed, and then that it is done", async () => {
    const { world, running } = await worldAtWork();
    const ask = () => world.clock.run(canceller(world, running, Number.POSITIVE_INFINITY, false).cancelled);
    world.cloud.kills = "failed";
    for (let times = 0; times < 3; times += 1) {
      await expect(ask()).rejects.toMatchObject({ code: "sandbox_unavailable" });
      expect(stillRunning(world, running)).toHaveLength(2);
    }
    world.cloud.kills = "done";
    expect(await ask()).toMatchObject({ kind: "cancelled" });
    expect(stillRunning(world, running)).toEqual([]);
  });

  it("may be done by two at once", async () => {
    const { world, running } = await worldAtWork();
    const both = [1, 2].map(() => canceller(world, running, Number.POSITIVE_INFINITY, true).cancelled);
    for (const answer of await world.clock.run(Promise.all(both)))
      expect(answer).toMatchObject({ kind: "cancelled" });
    expect(stillRunning(world, running)).toEqual([]);
  });
});

/** Begins an attempt, and leases the worker of a free slot for it. */
async function attempt(world: SweepWorld, slot: number) {
  const ctx = world.context();
  const begun = await beginBatch(ctx, { batchId, bodyHash: "body" });
  if (begun.kind !== "begun") throw new Error(`it is ${begun.kind}`);
  const { claim } = begun;
  const batchTag = batchTagOf({ batchId, attemptNumber: claim.attemptNumber });
  const lease = (at: number) => acquireSlot(ctx, at, { runTag: shortTag("run"), batchTag });
  return { claim, lease, held: present(await lease(slot)) };
}

/** A supervisor that takes its time to say that it is clean. */
function slowCanceller(world: SweepWorld) {
  const stopped: number[] = [];
  const stop: CancelContext["stopper"]["stop"] = async ({ slot }) => {
    stopped.push(slot);
    await world.clock.sleep(400);
  };
  return { stopped, cancel: () => cancelBatch({ ...world.context(), stopper: { stop } }, batchId) };
}

async function worldWithFree(): Promise<SweepWorld> {
  const world = createSweepWorld({ settings: { slots: 6 } });
  for (let slot = 0; slot < 6; slot += 1) await addWorker(world, slot);
  return world;
}

describe("cancelling a batch that is sent again before its workers are stopped", () => {
  it("stops the workers of the cancelled attempt, also those it leases meanwhile, and none of the next one's", async () => {
    const world = await worldWithFree();
    const first = await attempt(world, 0);
    const { stopped, cancel } = slowCanceller(world);
    const cancelling = cancel();
    await world.clock.pass(100);
    const next = await attempt(world, 1);
    await first.lease(2); // it has not learned yet that it is cancelled
    for (const slot of [3, 4]) await next.lease(slot);
    expect(await world.clock.run(cancelling)).toEqual({ kind: "cancelled", stopped: 2 });
    expect(stopped).toEqual([0, 2]);
    const holders = world.slots().map(({ state, heldForBatch }) => [state, heldForBatch]);
    const held = ["leased", batchTagOf({ batchId, attemptNumber: next.claim.attemptNumber })];
    const free = ["ready", undefined];
    expect(holders).toEqual([free, held, free, held, held, free]);
  });

  it("stops what attempts before it left behind, too", async () => {
    const world = await worldWithFree();
    await attempt(world, 0); // its handler is frozen
    await world.clock.pass(world.settings.leaseMs + world.settings.graceMs + 1_000);
    await attempt(world, 1);
    const { stopped, cancel } = slowCanceller(world);
    expect(await world.clock.run(cancel())).toEqual({ kind: "cancelled", stopped: 2 });
    expect(stopped.toSorted()).toEqual([0, 1]);
  });

  it("stops workers whose slots don't say of which attempt they are, as those of a former version", async () => {
    const world = await worldWithFree();
    await attempt(world, 0);
    present(await acquireSlot(world.context(), 1, holder));
    const { stopped, cancel } = slowCanceller(world);
    await world.clock.run(cancel());
    expect(stopped.toSorted()).toEqual([0, 1]);
  });

  it("is over for an attempt that ended by itself, and leaves the next one alone", async () => {
    const world = await worldWithFree();
    const first = await attempt(world, 0);
    await endBatch(world.context(), first.claim);
    const { stopped, cancel } = slowCanceller(world);
    expect(await world.clock.run(cancel())).toEqual({ kind: "over" });
    await attempt(world, 1);
    await world.clock.pass(10_000);
    expect(stopped).toEqual([]);
  });
});
