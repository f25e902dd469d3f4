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

  it("is not asked again when nobody waits any more", async () => {
    const { clock, askedAtMs, stop, insist } = createScene(Array.from({ length: 99 }, down));
    const answer = insist(60_000);
    answer.catch(() => {});
    await clock.advance(600);
    stop.abort();
    await expect(answer).rejects.toMatchObject({ code: "store_unavailable" });
    expect(askedAtMs).toHaveLength(3); // the last try ends the pause that was cut short
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
