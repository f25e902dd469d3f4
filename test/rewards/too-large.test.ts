/** A worker, or who stands before it, takes no request of the size that it was sent. */
import { expect, it } from "vitest";
import { describeChunk } from "../../functions/adapters/supervisor-chunk.ts";
import type { CaseResult } from "../../functions/rewards/batch.ts";
import { createBoard } from "../../functions/rewards/board.ts";
import { grade } from "./batches.ts";
import { batchOf, echoTask } from "./echo-batches.ts";
import { obey, type Script } from "./scripted-workers.ts";

/** Refuses a chunk at its first case, as nothing of it was started. */
const takesAtMost =
  (limitBytes: number): Script =>
  (turn) => {
    const isTooLarge = Buffer.byteLength(describeChunk(turn.chunk, 1, 1)) > limitBytes;
    return isTooLarge ? { kind: "stop", summary: "too_large" } : obey(turn);
  };

const many = Array.from({ length: 200 }, (_, n) => `right ${n} ${"x".repeat(1_000)}`);

it.each([
  ["a few programs", 100_000],
  ["two or three programs", 5_000],
  ["a single program", 1_600],
])("one that takes %s at a time gets as many, and nobody pays for that", async (_, limitBytes) => {
  const { answer, results, workers } = await grade(batchOf(many, echoTask(3)), {
    script: takesAtMost(limitBytes),
  });
  expect(results.map(({ reward }) => reward)).toEqual(many.map(() => 1));
  expect((await answer).usage.retries).toBe(0);
  expect(workers.leases.flatMap(({ released }) => released)).not.toContain("broken");
  expect(workers.leases.length).toBeLessThanOrEqual(2);
  // Each refusal halves what is sent from then on; few were under way when the first one came.
  expect(workers.chunks.length).toBeLessThan(many.length * 1.5);
});

it("a single case that no worker takes is a fault of its own: not to be sent again, and no harm to others", async () => {
  const large = `right ${"y".repeat(20_000)}`;
  const sources = [...many.slice(0, 20), large, ...many.slice(20, 40)];
  const { answer, results, workers } = await grade(batchOf(sources, echoTask(3)), {
    script: takesAtMost(10_000),
  });
  const faults = results.map((result) => (result.kind === "fault" ? result.fault : null));
  expect(faults.filter((fault) => fault !== null)).toHaveLength(1);
  expect(faults[20]).toMatchObject({
    code: "invalid_task",
    retryable: false,
    detail: expect.stringMatching(/a request of 2\d{4} bytes/),
  });
  expect(results.filter(({ reward }) => reward === 1)).toHaveLength(40);
  expect((await answer).usage.retries).toBe(0);
  expect(workers.leases.flatMap(({ released }) => released)).not.toContain("broken");
});

it("a worker that refuses what it has begun breaks the protocol", async () => {
  let refusals = 0;
  const { results, workers } = await grade(batchOf(["right"], echoTask(1)), {
    script: (turn) => {
      refusals += 1;
      return refusals === 1 ? { kind: "stop", started: true, summary: "too_large" } : obey(turn);
    },
  });
  expect(results.map(({ reward }) => reward)).toEqual([1]);
  expect(workers.leases.flatMap(({ released }) => released)).toContain("broken");
});

it("what another worker has done meanwhile, or does, is not sent again", () => {
  const program = { id: "p", source: Buffer.from("right"), task: echoTask(8), sampleIndexes: [0] };
  const board = createBoard([program], () => {});
  const sent = board.take(1);
  if (sent === null) throw new Error("nothing was handed out");
  expect(sent.portions[0]?.caseIndexes).toHaveLength(8);
  for (const caseIndex of [4, 5])
    board.endCase(program, caseIndex, { verdict: { kind: "passed" } } as CaseResult);
  board.splitChunk(sent, [{ program, caseIndexes: [0, 1, 2, 3, 4, 5] }]); // 6 and 7 are at another worker
  const again: number[] = [];
  for (let next = board.take(1); next !== null; next = board.take(1))
    again.push(...next.portions.flatMap(({ caseIndexes }) => caseIndexes));
  expect(again.sort()).toEqual([0, 1, 2, 3]);
});
