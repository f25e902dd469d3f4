/**
 * The cases of one chunk: what their worker has told of each, and which of them another worker was given, too.
 *
 * A case that waits behind a slow one can't be taken back from its worker. It may be handed over all the same: both may
 * run it, and what ends first counts.
 */
import type { Board } from "./board.ts";
import type { PlannedProgram } from "./plan.ts";
import type { Assignment, Portion } from "./work-queue.ts";

export type CaseState = "waiting" | "started" | "ended";

/** A program's cases in this chunk, by their index in the chunk. */
export interface Tracked {
  readonly program: PlannedProgram;
  readonly caseIndexes: readonly number[];
  readonly states: CaseState[];
  /** Cases, by their index in the chunk, that another worker sees to. */
  readonly handedOver: Set<number>;
  /** The worker has told of the program as a whole: none of its cases is to come. */
  isJudged: boolean;
}

export type TrackedChunk = ReadonlyMap<string, Tracked>;

export function track({ portions }: Assignment): Map<string, Tracked> {
  const tracked = new Map<string, Tracked>();
  for (const { program, caseIndexes } of portions) {
    const states = caseIndexes.map((): CaseState => "waiting");
    tracked.set(program.id, { program, caseIndexes, states, handedOver: new Set(), isJudged: false });
  }
  return tracked;
}

export function hasRestOf(tracked: Tracked): boolean {
  return !tracked.isJudged && tracked.states.some((state) => state !== "ended");
}

/** What is left of the chunk in this state for its own worker to see to, as cases of their programs. */
export function restIn(chunk: TrackedChunk, wanted: CaseState): Portion[] {
  return [...chunk.values()].flatMap((tracked) => {
    const caseIndexes = ownIndexes(tracked, wanted).map((index) => tracked.caseIndexes[index] as number);
    return caseIndexes.length > 0 ? [{ program: tracked.program, caseIndexes }] : [];
  });
}

/** What was handed over is seen to elsewhere, unless it was started here all the same. */
function ownIndexes({ isJudged, states, handedOver }: Tracked, wanted: CaseState): number[] {
  if (isJudged) return [];
  const indexes = [...states.keys()].filter((index) => states[index] === wanted);
  return wanted === "started" ? indexes : indexes.filter((index) => !handedOver.has(index));
}

export function countOwnWaiting(chunk: TrackedChunk, board: Board): number {
  let count = 0;
  for (const tracked of chunk.values())
    if (board.isOpen(tracked.program)) count += ownIndexes(tracked, "waiting").length;
  return count;
}

/** Looks no further than the first one. */
export function hasOwnWaiting(chunk: TrackedChunk, board: Board): boolean {
  for (const { program, isJudged, states, handedOver } of chunk.values()) {
    if (isJudged || !board.isOpen(program)) continue;
    for (let index = states.length - 1; index >= 0; index -= 1)
      if (states[index] === "waiting" && !handedOver.has(index)) return true;
  }
  return false;
}

/** Marks the latter half of the waiting cases as another worker's. */
export function handOverHalf(chunk: TrackedChunk, board: Board): readonly Portion[] {
  const waiting = [...chunk.values()]
    .filter(({ program }) => board.isOpen(program))
    .flatMap((tracked) => ownIndexes(tracked, "waiting").map((index) => ({ tracked, index })));
  const half = waiting.slice(Math.floor(waiting.length / 2));
  const portions = new Map<Tracked, number[]>();
  for (const { tracked, index } of half) {
    tracked.handedOver.add(index);
    portions.set(tracked, [...(portions.get(tracked) ?? []), tracked.caseIndexes[index] as number]);
  }
  return [...portions].map(([{ program }, caseIndexes]) => ({ program, caseIndexes }));
}

/** Whether some of the chunk was handed over, and all else that anybody waits for has ended. */
export function isDoneElsewhere(chunk: TrackedChunk, board: Board): boolean {
  let handedOver = 0;
  for (const tracked of chunk.values()) {
    if (tracked.isJudged) continue;
    const left = [...tracked.states.keys()].filter((index) => tracked.states[index] !== "ended");
    const own = left.filter((index) => !tracked.handedOver.has(index));
    if (own.length > 0 && board.isOpen(tracked.program)) return false;
    handedOver += left.length - own.length;
  }
  return handedOver > 0;
}
