/** A worker is given its next chunk shortly before the present one ends. */
import { expect, it } from "vitest";
import { many } from "./bad-programs.ts";
import { grade, startGrading } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { lost, obey, type Script, type ScriptedLease } from "./scripted-workers.ts";
import { settle } from "./virtual-clock.ts";

const sources = Array.from({ length: 64 }, (_, index) => `right ${index}`);

/** The most chunks that one worker had at once, as its turns saw it. */
function watchChunks(leases: () => readonly ScriptedLease[]) {
  const seen = { most: 0, whileAlone: 0 };
  const watch: Script = (turn) => {
    const executing = leases().find(({ workerId }) => workerId === turn.workerId)?.executing ?? 0;
    seen.most = Math.max(seen.most, executing);
    if (turn.attempt > 1) seen.whileAlone = Math.max(seen.whileAlone, executing);
    return obey(turn);
  };
  return { seen, watch };
}

it("it has two when they are short, never more, and each case runs once", async () => {
  const { seen, watch } = watchChunks(() => grading.workers.leases);
  const grading = startGrading(batchOf(sources, echoTask(3)), { script: watch });
  expect((await grading.answer).rewards).toEqual(sources.map(() => 1));
  expect(seen.most).toBe(2);
  expect(new Set(grading.workers.turns).size).toBe(grading.workers.turns.length);
});

it("it has one while the rest of that will take long", async () => {
  const { seen, watch } = watchChunks(() => grading.workers.leases);
  const grading = startGrading(batchOf(sources, echoTask(3), { deadlineMs: 600_000 }), {
    script: async (turn) => {
      await grading.clock.sleep(300);
      return watch(turn);
    },
  });
  await grading.clock.advance(400_000);
  expect((await grading.answer).rewards).toEqual(sources.map(() => 1));
  expect(seen.most).toBe(1);
});

it("it has one while the slow cases of that are left, however quick the others were", async () => {
  const { seen, watch } = watchChunks(() => grading.workers.leases);
  const grading = startGrading(batchOf(sources, echoTask(8), { deadlineMs: 840_000 }), {
    script: async (turn) => {
      const isSlow = turn.chunk.programs.indexOf(turn.job) >= turn.chunk.programs.length / 2;
      await grading.clock.sleep(isSlow ? 2_000 : 1);
      return watch(turn);
    },
  });
  await grading.clock.advance(800_000);
  expect((await grading.answer).rewards).toEqual(sources.map(() => 1));
  expect(seen.most).toBe(1);
});

it("one that lost its worker costs the programs of the next chunk nothing, however often that happens", async () => {
  const bad = Array.from({ length: 6 }, (_, index) => `bad ${index}`);
  const mixed = many.flatMap((name, index) =>
    index % 3 === 0 ? [name, bad[index / 3] ?? `more ${index}`] : [name],
  );
  const { rewards, results } = await grade(batchOf(mixed, echoTask(2)), {
    script: (turn) => {
      const isBad = turn.job.source.startsWith("bad") && turn.input === "1";
      return isBad ? { kind: "throw", error: lost() } : obey(turn);
    },
  });
  for (const [index, name] of mixed.entries()) {
    if (name.startsWith("bad")) expect(results[index]).toMatchObject({ fault: { code: "worker_lost" } });
    else expect([name, rewards[index]]).toEqual([name, 1]);
  }
});

it("what must run alone has no chunk beside it", async () => {
  const { seen, watch } = watchChunks(() => grading.workers.leases);
  const grading = startGrading(batchOf(["bad 1", "bad 2", ...sources], echoTask(1)), {
    script: (turn) =>
      turn.job.source.startsWith("bad") && turn.attempt === 1
        ? { kind: "throw", error: lost() }
        : watch(turn),
  });
  expect((await grading.answer).rewards).toEqual([1, 1, ...sources.map(() => 1)]);
  expect(seen.whileAlone).toBe(1);
});

it("an error in the one ends the other before the worker goes back", async () => {
  const grading = startGrading(batchOf(sources, echoTask(3)), {
    maxWorkers: 1,
    script: (turn) => {
      if (grading.workers.chunks.length > 1) throw new Error("a bug in an adapter");
      return obey(turn);
    },
  });
  await settle();
  await expect(grading.answer).rejects.toThrow("a bug in an adapter");
  expect(grading.workers.leases).toMatchObject([{ executing: 0, released: ["broken"] }]);
});

it("nothing is sent ahead to a worker that has refused, or that was lost", async () => {
  const { rewards, workers } = await grade(batchOf(sources, echoTask(3)), {
    script: ({ workerId, ...turn }) =>
      workerId === "w1" ? { kind: "throw_before", error: lost() } : obey({ workerId, ...turn }),
  });
  expect(rewards).toEqual(sources.map(() => 1));
  expect(workers.leases[0]).toMatchObject({ workerId: "w1", chunks: { length: 1 }, released: ["broken"] });
});
