/** Timers ring a moment early now and then, and the clock may be set back: nobody waits for ever because of it. */
import { describe, expect, it } from "vitest";
import { Fault } from "../../functions/rewards/faults.ts";
import { allRight, many } from "./bad-programs.ts";
import { type GradingOptions, grade, startGrading } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { lost, obey } from "./scripted-workers.ts";
import { createVirtualClock, type VirtualClock } from "./virtual-clock.ts";

const startMs = 1_700_000_000_000;
const sources = Array.from({ length: 40 }, (_, index) => `right ${index}`);

const lostAtFirst: GradingOptions = {
  maxWorkers: 1,
  isDead: (workerId) => workerId === "w1",
  script: (turn) => (turn.workerId === "w1" ? { kind: "throw_before", error: lost() } : obey(turn)),
};

/** The second worker is asked for in vain for a while; without it, the rest takes long. */
function refusedAtFirst(clock: VirtualClock): GradingOptions {
  return {
    maxWorkers: 2,
    async onAcquire(count) {
      if (count > 1 && clock.nowMs() < startMs + 1_000) throw new Fault("sandbox_unavailable", "not now");
      return undefined;
    },
    async script(turn) {
      await clock.sleep(1_000);
      return obey(turn);
    },
  };
}

function wantedElsewhere(clock: VirtualClock): GradingOptions {
  return {
    maxWorkers: 1,
    isWantedElsewhere: async () => true,
    async script(turn) {
      await clock.sleep(200);
      return obey(turn);
    },
  };
}

describe.each([0, 1])("with timers that ring %i ms early", (wakesEarlyMs) => {
  const createClock = () => createVirtualClock(startMs, { wakesEarlyMs });

  it("another worker is asked for after one that was lost", async () => {
    const { rewards, clock } = await grade(batchOf(many), { ...lostAtFirst, clock: createClock() });
    expect(rewards).toEqual(allRight);
    expect(clock.nowMs() - startMs).toBeLessThan(1_000);
  });

  it("another one is asked for after the only one was given to somebody else", async () => {
    const clock = createClock();
    const { rewards, workers } = await grade(batchOf(sources), { ...wantedElsewhere(clock), clock });
    expect(rewards).toEqual(sources.map(() => 1));
    expect(workers.leases.length, "it was given away").toBeGreaterThan(1);
    expect(clock.nowMs() - startMs).toBeLessThan(20_000);
  });

  it("a second one is asked for again after it could not be had", async () => {
    const clock = createClock();
    const { rewards, workers } = await grade(batchOf(sources), { ...refusedAtFirst(clock), clock });
    expect(rewards).toEqual(sources.map(() => 1));
    expect(workers.leases.length, "the second one came").toBeGreaterThan(1);
  });

  it("the deadline ends what has not ended", async () => {
    const clock = createClock();
    const { results } = await grade(batchOf(["right", "hangs"], echoTask(1), { deadlineMs: 10_000 }), {
      clock,
      maxWorkers: 1,
      script: (turn) => (turn.job.source.startsWith("hangs") ? { kind: "hang" } : obey(turn)),
    });
    expect(results[1]).toMatchObject({ fault: { code: "deadline_exceeded" } });
    expect(clock.nowMs() - startMs).toBeLessThanOrEqual(10_000);
  });
});

describe("with a clock that is set back by an hour", () => {
  it("a pause takes no longer", async () => {
    const grading = startGrading(batchOf(many), lostAtFirst);
    await grading.clock.advance(10);
    grading.clock.setBack(3_600_000);
    let isOver = false;
    void grading.answer.finally(() => {
      isOver = true;
    });
    await grading.clock.advance(1_000);
    expect(isOver).toBe(true);
    expect((await grading.answer).rewards).toEqual(allRight);
  });
});
