/** Cancelling a batch, by somebody who may die at any point. */
import { describe, expect, it } from "vitest";
import { beginBatch } from "../../functions/pool/batches/begin-batch.ts";
import { type CancelContext, cancelBatch } from "../../functions/pool/batches/cancel-batch.ts";
import { shortTag } from "../../functions/pool/slot-row.ts";
import { addWorker, createSweepWorld, dyingAt, type SweepWorld } from "./sweep-world.ts";

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
