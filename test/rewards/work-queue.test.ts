import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunkLimits } from "../../functions/rewards/chunking.ts";
import type { PlannedProgram } from "../../functions/rewards/plan.ts";
import { firstStage, nextStage } from "../../functions/rewards/stages.ts";
import { type Assignment, createWorkQueue, type WorkQueue } from "../../functions/rewards/work-queue.ts";
import { echoTask } from "./echo-batches.ts";

function program(id: number, cases: number, failFast = false): PlannedProgram {
  const task = { ...echoTask(cases), failFast };
  return { id: `p${id}`, source: Buffer.from(`${id}\n`), task, sampleIndexes: [id] };
}

function casesOf(assignment: Assignment): string[] {
  return assignment.portions.flatMap(({ program: { id }, caseIndexes }) =>
    caseIndexes.map((index) => `${id}/${index}`),
  );
}

const step = fc.oneof(
  fc.record({ kind: fc.constant("take" as const), workers: fc.integer({ min: 1, max: 4 }) }),
  fc.record({
    kind: fc.constantFrom(
      "hold" as const,
      "letGo" as const,
      "drop" as const,
      "allow" as const,
      "allow" as const,
    ),
    which: fc.nat(),
  }),
  fc.record({ kind: fc.constant("putBack" as const), which: fc.nat(), alone: fc.boolean() }),
);

/** What should wait, kept in the plainest way. */
interface Model {
  readonly programs: readonly PlannedProgram[];
  readonly together: Set<string>;
  readonly alone: string[];
  readonly taken: { program: PlannedProgram; caseIndex: number }[];
  readonly held: Set<string>;
  readonly dropped: Set<string>;
  /** Of each program, how many cases may be handed out by now. */
  readonly stages: Map<string, number>;
}

function countTakeable({ together, alone, held }: Model): number {
  return [...together].filter((name) => !held.has(name.split("/")[0] as string)).length + alone.length;
}

function takeBoth(queue: WorkQueue, model: Model, workers: number): void {
  const before = countTakeable(model);
  const assignment = queue.take(workers);
  expect(assignment === null, "nothing is handed out exactly when nothing waits").toBe(before === 0);
  if (assignment === null) return;
  const names = casesOf(assignment);
  expect(names.length).toBeGreaterThan(0);
  expect(names.length).toBeLessThanOrEqual(chunkLimits.largestCases);
  expect(new Set(names).size).toBe(names.length);
  if (assignment.alone) expect(names).toEqual([model.alone.shift()]);
  for (const { program: owner, caseIndexes } of assignment.portions) {
    for (const caseIndex of caseIndexes) {
      if (!assignment.alone) {
        expect(model.held.has(owner.id), "what is held is not handed out").toBe(false);
        expect(model.together.delete(`${owner.id}/${caseIndex}`), "each case is handed out once").toBe(true);
      }
      model.taken.push({ program: owner, caseIndex });
    }
  }
}

describe("the queue of what waits for a worker", () => {
  it("hands out each case once, holds what is held and forgets what is dropped", () => {
    const size = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 6, max: 40 }), fc.constant(300));
    const sizes = fc.array(fc.tuple(size, fc.boolean()), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(sizes, fc.array(step, { maxLength: 60 }), (caseCounts, steps) => {
        const programs = caseCounts.map(([cases, failFast], index) => program(index, cases, failFast));
        const queue = createWorkQueue(programs);
        const stages = new Map(programs.map(({ id, task }) => [id, firstStage(task)]));
        const names = programs.flatMap(({ id }) => nameCases(id, 0, stages.get(id) ?? 0));
        const model: Model = {
          programs,
          together: new Set(names),
          alone: [],
          taken: [],
          held: new Set(),
          dropped: new Set(),
          stages,
        };
        for (const action of steps) {
          if (action.kind === "take") takeBoth(queue, model, action.workers);
          else if (action.kind === "putBack") putBackBoth(queue, model, action.which, action.alone);
          else
            changeBoth(queue, model, action.kind, programs[action.which % programs.length] as PlannedProgram);
          expect(queue.size()).toBe(countTakeable(model));
          expect(queue.sizeAlone()).toBe(model.alone.length);
        }
        while (countTakeable(model) > 0) takeBoth(queue, model, 2);
        expect(queue.take(2)).toBeNull();
      }),
      { numRuns: 500 },
    );
  });

  it("takes no more than 4 MiB at once, and at least one case", () => {
    const task = { ...echoTask(6), inputs: Array.from({ length: 6 }, () => "z".repeat(3_000_000)) };
    const queue = createWorkQueue([{ id: "p0", source: Buffer.alloc(0), task, sampleIndexes: [0] }]);
    for (let taken = 0; taken < 6; taken += 1)
      expect(casesOf(queue.take(1) as Assignment)).toEqual([`p0/${taken}`]);
  });
});

function nameCases(id: string, from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => `${id}/${from + index}`);
}

function putBackBoth(queue: WorkQueue, model: Model, which: number, alone: boolean): void {
  if (model.taken.length === 0) return;
  const [single] = model.taken.splice(which % model.taken.length, 1);
  if (single === undefined) return;
  const name = `${single.program.id}/${single.caseIndex}`;
  if (alone) model.alone.push(name);
  else model.together.add(name);
  queue.putBack(single.program, single.caseIndex, alone);
}

function changeBoth(
  queue: WorkQueue,
  model: Model,
  kind: "hold" | "letGo" | "drop" | "allow",
  target: PlannedProgram,
): void {
  if (kind === "allow") {
    allowBoth(queue, model, target);
    return;
  }
  queue[kind](target);
  if (kind === "hold") model.held.add(target.id);
  if (kind === "letGo") model.held.delete(target.id);
  if (kind !== "drop") return;
  model.dropped.add(target.id);
  const isItsOwn = (name: string) => name.split("/")[0] === target.id;
  for (const name of model.together) if (isItsOwn(name)) model.together.delete(name);
  model.alone.splice(0, model.alone.length, ...model.alone.filter((name) => !isItsOwn(name)));
}

/** The next portion of a program whose fate is open. */
function allowBoth(queue: WorkQueue, { stages, dropped, together }: Model, target: PlannedProgram): void {
  if (dropped.has(target.id)) return;
  const from = stages.get(target.id) ?? 0;
  const to = nextStage(target.task, from);
  stages.set(target.id, to);
  for (const name of nameCases(target.id, from, to)) together.add(name);
  queue.allow(target, to);
}
