/** A batch gives workers to those who have none, its only one too. */
import { describe, expect, it } from "vitest";
import { grade, startGrading } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { obey } from "./scripted-workers.ts";
import { createVirtualClock } from "./virtual-clock.ts";

const startMs = 1_700_000_000_000;
const sources = Array.from({ length: 40 }, (_, index) => `right ${index}`);

/** One worker for two batches of 16 s each; who is told when the other waits. */
function gradeTwo(caseMs: number) {
  const waits = { first: false, second: false };
  const leased: { readonly by: string; readonly atMs: number }[] = [];
  let held = false;
  const waiting: (() => void)[] = [];
  const run = (
    by: "first" | "second",
    clock = undefined as ReturnType<typeof startGrading>["clock"] | undefined,
  ) => {
    const other = by === "first" ? "second" : "first";
    const grading = startGrading(batchOf(sources, echoTask(1), { deadlineMs: 300_000 }), {
      ...(clock === undefined ? {} : { clock }),
      maxWorkers: 1,
      isWantedElsewhere: async () => waits[other],
      onAcquire: async () => {
        waits[by] = true;
        while (held) await new Promise<void>((resolve) => waiting.push(resolve));
        held = true;
        waits[by] = false;
        leased.push({ by, atMs: grading.clock.nowMs() - startMs });
        return undefined;
      },
      beforeRelease: async () => {
        held = false;
        for (const wake of waiting.splice(0)) wake();
      },
      script: async (turn) => {
        await grading.clock.sleep(caseMs);
        return obey(turn);
      },
    });
    return grading;
  };
  const first = run("first");
  const second = run("second", first.clock);
  return { first, second, leased };
}

describe("two batches and one worker", () => {
  it("take turns, at the ends of chunks", async () => {
    const { first, second, leased } = gradeTwo(400);
    await first.clock.advance(120_000);
    expect((await first.answer).rewards).toEqual(sources.map(() => 1));
    expect((await second.answer).rewards).toEqual(sources.map(() => 1));
    expect(leased.length).toBeGreaterThan(3);
    for (const [index, { by }] of leased.slice(0, 4).entries())
      expect(by).toBe(index % 2 ? "second" : "first");
    const [one, two] = [leased[0], leased[1]];
    expect((two?.atMs ?? 0) - (one?.atMs ?? 0), "not before it was of some use").toBeGreaterThanOrEqual(
      3_000,
    );
    expect((two?.atMs ?? 0) - (one?.atMs ?? 0), "not only when all is done").toBeLessThan(16_000);
    const turns = [...first.workers.turns, ...second.workers.turns];
    expect(turns, "no case is run twice for it").toHaveLength(80);
  });

  it("don't for what is soon done", async () => {
    const { first, second, leased } = gradeTwo(40);
    await first.clock.advance(120_000);
    await Promise.all([first.answer, second.answer]);
    expect(leased.map(({ by }) => by)).toEqual(["first", "second"]);
  });
});

/** One worker for 600 quick programs, while it takes so long to find out whether somebody else waits. */
async function gradeWhileAsking(answersAfterMs: number, answer: boolean, deadlineMs: number, caseMs = 20) {
  const clock = createVirtualClock();
  const many = Array.from({ length: 600 }, (_, index) => `right ${index}`);
  const done = await grade(batchOf(many, echoTask(4), { deadlineMs }), {
    clock,
    maxWorkers: 1,
    async isWantedElsewhere() {
      await clock.sleep(answersAfterMs);
      return answer;
    },
    async script(turn) {
      await clock.sleep(caseMs);
      return obey(turn);
    },
  });
  const tookMs = clock.nowMs() - startMs;
  await clock.advance(answersAfterMs); // who was asked last says it to nobody
  return { ...done, tookMs };
}

describe("who asks whether somebody else waits", () => {
  it("does not wait for the answer when the table says nothing", async () => {
    const least = await gradeWhileAsking(0, false, 800_000);
    const silent = await gradeWhileAsking(8_000, false, 800_000);
    expect(silent.rewards).toEqual(least.rewards);
    expect(least.rewards).toEqual(Array.from({ length: 600 }, () => 1));
    expect(silent.tookMs - least.tookMs).toBeLessThan(3_000);
  });

  it("asks one at a time", async () => {
    let asking = 0;
    let most = 0;
    const clock = createVirtualClock();
    await grade(batchOf(sources, echoTask(40), { deadlineMs: 800_000 }), {
      clock,
      maxWorkers: 1,
      async isWantedElsewhere() {
        asking += 1;
        most = Math.max(most, asking);
        await clock.sleep(60_000);
        asking -= 1;
        return true;
      },
      async script(turn) {
        await clock.sleep(20);
        return obey(turn);
      },
    });
    await clock.advance(60_000);
    expect(most).toBe(1);
  });
});

describe("the only worker of a batch", () => {
  it("is kept shortly before its deadline: another turn would not come in time", async () => {
    const { rewards, workers } = await gradeWhileAsking(0, true, 25_000, 5);
    expect(rewards).toEqual(Array.from({ length: 600 }, () => 1));
    expect(workers.leases).toHaveLength(1);
  });

  it("is given away before that", async () => {
    const { workers } = await gradeWhileAsking(0, true, 800_000, 5);
    expect(workers.leases.length).toBeGreaterThan(1);
  });
});
