/** A table that does not answer is asked again, within the batch's time and not beyond it. */
import { describe, expect, it } from "vitest";
import { Fault } from "../../functions/rewards/faults.ts";
import { insistOnTable } from "../../functions/rewards/table-patience.ts";
import { createVirtualClock } from "./virtual-clock.ts";

const startMs = 1_800_000_000_000;

function createScene(faults: readonly unknown[], random = 0.5) {
  const clock = createVirtualClock(startMs);
  const askedAtMs: number[] = [];
  const reported: unknown[] = [];
  const stop = new AbortController();
  const insist = (withinMs: number) =>
    insistOnTable(
      { clock, random: () => random, report: (fault) => reported.push(fault) },
      { deadlineAtMs: startMs + withinMs, signal: stop.signal },
      async () => {
        const fault = faults[askedAtMs.length];
        askedAtMs.push(clock.nowMs() - startMs);
        if (fault !== undefined) throw fault;
        return "answer";
      },
    );
  return { clock, askedAtMs, reported, stop, insist };
}

const down = () => new Fault("store_unavailable", "down");

describe("a table that does not answer", () => {
  it("is asked again after longer and longer pauses, until it does", async () => {
    const { clock, askedAtMs, reported, insist } = createScene([down(), down(), down()]);
    const answer = insist(60_000);
    await clock.advance(60_000);
    expect(await answer).toBe("answer");
    expect(askedAtMs).toEqual([0, 500, 1_500, 3_500]);
    expect(reported).toHaveLength(3);
  });

  it.each([
    ["with the pauses spread over all of their length", 0, null, [0, 0, 0, 0]],
    ["and no sooner than it wants", 0.5, 4_000, [0, 4_000, 8_000, 12_000]],
  ])("is asked again %s", async (_, random, retryAfterMs, expected) => {
    const fault = new Fault("store_unavailable", "down", { retryAfterMs });
    const { clock, askedAtMs, insist } = createScene([fault, fault, fault], random);
    const answer = insist(60_000);
    await clock.advance(60_000);
    expect(await answer).toBe("answer");
    expect(askedAtMs).toEqual(expected);
  });

  it("has its fault told when no time is left for another try", async () => {
    const { clock, askedAtMs, insist } = createScene(Array.from({ length: 99 }, down));
    const answer = insist(10_000);
    answer.catch(() => {});
    await clock.advance(10_000);
    await expect(answer).rejects.toMatchObject({ code: "store_unavailable" });
    expect(askedAtMs).toEqual([0, 500, 1_500, 3_500, 7_500]);
  });

  it.each([
    ["nobody waits any more", undefined, "cancelled"],
    ["the service stops", new Fault("stopping", "a restart"), "stopping"],
  ])("is not asked again when %s", async (_, reason, code) => {
    const { clock, askedAtMs, stop, insist } = createScene(Array.from({ length: 99 }, down));
    const answer = insist(60_000);
    answer.catch(() => {});
    await clock.advance(600);
    stop.abort(reason);
    await expect(answer).rejects.toMatchObject({ code });
    expect(askedAtMs).toHaveLength(2);
    await expect(insist(60_000)).rejects.toMatchObject({ code });
    expect(askedAtMs).toHaveLength(2);
    expect(clock.sleepers()).toBe(0);
  });

  it.each([new Fault("misconfigured", "no such table"), new TypeError("a bug")])(
    "but says %s is believed",
    async (error) => {
      const { insist, askedAtMs } = createScene([error]);
      await expect(insist(60_000)).rejects.toBe(error);
      expect(askedAtMs).toHaveLength(1);
    },
  );
});

describe("a try that hangs", () => {
  function createHanging() {
    const clock = createVirtualClock(startMs);
    const stop = new AbortController();
    const late: string[] = [];
    let answer = (_: string) => {};
    const insisting = insistOnTable(
      { clock, random: () => 0.5, report: () => {} },
      { deadlineAtMs: startMs + 10_000, signal: stop.signal },
      () =>
        new Promise<string>((resolve) => {
          answer = resolve;
        }),
      (working) => void working.then((value) => late.push(value)),
    );
    insisting.catch(() => {});
    return { clock, stop, late, insisting, answer: (value: string) => answer(value) };
  }

  it("is waited for until there is no more time, and what comes of it then is let go of", async () => {
    const { clock, late, insisting, answer } = createHanging();
    await clock.advance(9_999);
    expect(clock.sleepers()).toBe(1);
    await clock.advance(1);
    await expect(insisting).rejects.toMatchObject({ code: "store_unavailable" });
    answer("too late");
    await clock.advance(0);
    expect(late).toEqual(["too late"]);
    expect(clock.sleepers()).toBe(0);
  });

  it("is waited for until nobody waits any more", async () => {
    const { clock, stop, late, insisting, answer } = createHanging();
    await clock.advance(100);
    stop.abort();
    await expect(insisting).rejects.toMatchObject({ code: "cancelled" });
    answer("too late");
    await clock.advance(0);
    expect(late).toEqual(["too late"]);
  });

  it("and comes in time is believed", async () => {
    const { clock, late, insisting, answer } = createHanging();
    await clock.advance(9_000);
    answer("in time");
    expect(await insisting).toBe("in time");
    expect([late, clock.sleepers()]).toEqual([[], 0]);
  });
});
