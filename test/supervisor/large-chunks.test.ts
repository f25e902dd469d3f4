/** The largest requests that the product makes, and larger ones, sent to a real supervisor by the product's own client. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { executeChunk } from "../../functions/adapters/supervisor-client.ts";
import { systemClock } from "../../functions/adapters/system-clock.ts";
import type { PlannedProgram } from "../../functions/rewards/plan.ts";
import type { Chunk, WorkerEvent } from "../../functions/rewards/ports.ts";
import type { PreparedTask } from "../../functions/rewards/task.ts";
import { createWorkQueue } from "../../functions/rewards/work-queue.ts";
import { checkedTask, chunkOf } from "../rewards/large-tasks.ts";
import { type Supervisor, startSupervisor } from "./harness.ts";
import { modes } from "./launch.ts";

let supervisor: Supervisor;
beforeAll(async () => {
  supervisor = await startSupervisor({ mode: modes[0] ?? "rootless" });
}, 60_000);
afterAll(() => supervisor.close());

async function execute(chunk: Chunk): Promise<WorkerEvent[]> {
  const connection = {
    baseUrl: `http://127.0.0.1:${supervisor.port}`,
    headers: { authorization: `Bearer ${supervisor.secret}` },
    fencingToken: 1,
  };
  const events: WorkerEvent[] = [];
  for await (const event of executeChunk(connection, chunk, new AbortController().signal, systemClock))
    events.push(event);
  return events;
}

let chunks = 0;
/** The first request of so many programs for one worker. */
function firstChunk(task: PreparedTask, sources: readonly string[]): Chunk {
  const programs = sources.map(
    (source, n): PlannedProgram => ({ id: `p${n}`, source: Buffer.from(source), task, sampleIndexes: [n] }),
  );
  const assignment = createWorkQueue(programs).take(1);
  if (assignment === null) throw new Error("there is something to take");
  return chunkOf(assignment, `large-${++chunks}`);
}

const resultsOf = (events: readonly WorkerEvent[]) =>
  events.flatMap((event) => (event.kind === "case_ended" ? [event.outcome.result] : []));

const control = "\u0001";

describe("a supervisor takes", () => {
  it("many programs with one checker of control characters", async () => {
    const checker = `x = "${control.repeat(65_000)}"\nimport sys\nprint(1)`;
    const sources = Array.from({ length: 256 }, (_, n) => `print(input())  # ${n}`);
    const chunk = firstChunk(checkedTask(checker, ["1"]), sources);
    expect(chunk.programs.length).toBeGreaterThan(170);
    const events = await execute(chunk);
    expect(events.at(-1)).toEqual({ kind: "summary", end: "completed" });
    expect(resultsOf(events)).toEqual(chunk.programs.map(() => "right"));
  }, 120_000);

  it("the largest case that a task may have: all of its texts at their limits, and escaped twice", async () => {
    const text = control.repeat(1_048_576);
    const checker = `${"#".repeat(100)}\nx = "${control.repeat(65_000)}"\nimport sys\na, b, c = (open(p).read() for p in sys.argv[1:])\nprint(int(a == b == c))`;
    const source = `x = "${control.repeat(65_000)}"\nimport sys\nsys.stdout.write(sys.stdin.read())`;
    const chunk = firstChunk(checkedTask(checker, [text], 1_048_576), [source]);
    expect(JSON.stringify(chunk).length).toBeGreaterThan(15_000_000);
    const events = await execute(chunk);
    expect(events.at(-1)).toEqual({ kind: "summary", end: "completed" });
    expect(resultsOf(events)).toEqual(["right"]);
  }, 60_000);
});

describe("a request that is larger than anything the product makes", () => {
  const chunkOfMib = (mib: number): Chunk => {
    const sources = Array.from({ length: mib }, () => `#${"x".repeat(1_048_576)}`);
    const task = checkedTask("print(1)", ["1"]);
    const programs = sources.map((source, n) => ({
      id: `p${n}`,
      source,
      inputs: ["1"],
      limits: task.limits,
    }));
    return { chunkId: `large-${++chunks}`, deadlineMs: 60_000, programs };
  };

  it("is refused as what it is, to the end of its upload, and the next one runs", async () => {
    expect(await execute(chunkOfMib(70))).toEqual([{ kind: "summary", end: "too_large" }]);
    const events = await execute(firstChunk(checkedTask("print(1)", ["1"]), ["print(input())"]));
    expect(resultsOf(events)).toEqual(["right"]);
  }, 60_000);
});
