/** What a chunk counts for is what its request takes, whatever its texts are made of. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { describeChunk } from "../../functions/adapters/supervisor-chunk.ts";
import { chunkLimits } from "../../functions/rewards/chunking.ts";
import type { PlannedProgram } from "../../functions/rewards/plan.ts";
import { countEncoded } from "../../functions/rewards/request-size.ts";
import type { PreparedTask } from "../../functions/rewards/task.ts";
import { type Assignment, createWorkQueue } from "../../functions/rewards/work-queue.ts";
import { checkedTask, chunkOf } from "./large-tasks.ts";

const nasty = fc.string({
  unit: fc.constantFrom(
    "a",
    " ",
    "\n",
    "\t",
    '"',
    "\\",
    "\u0000",
    "\u0001",
    "\u001f",
    "\u007f",
    "é",
    "\u2028",
    "\u{1f600}",
  ),
  maxLength: 60,
});

it("a text counts for its bytes in JSON", () => {
  fc.assert(
    fc.property(fc.oneof(nasty, fc.string({ unit: "binary" })), (text) => {
      expect(countEncoded(Buffer.from(text))).toBe(Buffer.byteLength(JSON.stringify(text)) - 2);
    }),
  );
});

function planned(tasks: readonly PreparedTask[], sources: readonly string[]): PlannedProgram[] {
  return sources.map((source, index) => ({
    id: `p${index}`,
    source: Buffer.from(source),
    task: tasks[index % tasks.length] as PreparedTask,
    sampleIndexes: [index],
  }));
}

/** All chunks that one worker would be given. */
function takeAll(programs: readonly PlannedProgram[], workers = 1): Assignment[] {
  const queue = createWorkQueue(programs);
  const all: Assignment[] = [];
  for (let next = queue.take(workers); next !== null; next = queue.take(workers)) all.push(next);
  return all;
}

const sizeOf = (assignment: Assignment) =>
  Buffer.byteLength(describeChunk(chunkOf(assignment), Number.MAX_SAFE_INTEGER, 840_000));

const countCases = ({ portions }: Assignment) =>
  portions.reduce((sum, { caseIndexes }) => sum + caseIndexes.length, 0);

it("a request is never larger than it was counted, and what is unseen of it is small", () => {
  const checkers = fc.array(nasty, { minLength: 1, maxLength: 3 });
  const inputs = fc.array(nasty, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(
      checkers,
      inputs,
      fc.array(nasty, { minLength: 1, maxLength: 20 }),
      (sources, texts, programs) => {
        const tasks = sources.map((checker) => checkedTask(checker, texts));
        for (const assignment of takeAll(planned(tasks, programs), 2)) {
          const unseen = assignment.bytes - sizeOf(assignment);
          expect(unseen).toBeGreaterThanOrEqual(0);
          expect(unseen).toBeLessThan(256 * (assignment.portions.length + 1));
        }
      },
    ),
    { numRuns: 60 },
  );
});

describe("no request of several cases is over the limit, and few are needed, with", () => {
  const control = "\u0001".repeat(64_000);
  const quotes = '"\\'.repeat(30_000);
  const plain = "x".repeat(64_000);
  it.each<[string, PreparedTask[], string, number, number]>([
    ["one checker of control characters for all", [checkedTask(control, ["1"])], "", 600, 8],
    [
      "a checker for each three programs",
      [1, 2, 3].map((n) => checkedTask(`${control}${n}`, ["1"])),
      "",
      600,
      8,
    ],
    ["programs of control characters", [checkedTask("", ["1"])], control, 100, 12],
    ["programs of quotes", [checkedTask("", ["1"])], quotes, 100, 6],
    ["programs of letters", [checkedTask("", ["1"])], plain, 100, 5],
    ["inputs of control characters", [checkedTask("", [control])], "", 100, 26],
  ])("%s", (_, tasks, source, count, mostRequests) => {
    const sources = Array.from({ length: count }, (_, n) => `${source}#${n}`);
    const chunks = takeAll(planned(tasks, sources));
    for (const assignment of chunks) {
      expect(countCases(assignment)).toBeGreaterThan(1);
      expect(sizeOf(assignment)).toBeLessThanOrEqual(chunkLimits.largestBytes);
    }
    expect(chunks.length).toBeLessThanOrEqual(mostRequests);
    expect(chunks.reduce((sum, each) => sum + countCases(each), 0)).toBe(count);
  });
});
