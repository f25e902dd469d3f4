/**
 * What has to run for a batch: the programs in its completions, each once.
 */
import { hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { type Completion, extractProgram, type NoProgramReason } from "../grading/extraction.ts";
import type { Batch } from "./batch.ts";
import { takeCompletion } from "./held-text.ts";
import type { PreparedTask } from "./task.ts";

/** One program on one task, and the samples that it answers for. */
export interface PlannedProgram {
  readonly id: string;
  /** As UTF-8, outside of JavaScript's heap until it is sent. */
  readonly source: Buffer;
  readonly task: PreparedTask;
  readonly sampleIndexes: readonly number[];
}

export interface Plan {
  readonly programs: readonly PlannedProgram[];
  readonly withoutProgram: readonly { readonly sampleIndex: number; readonly reason: NoProgramReason }[];
  /** Samples beyond the first of each program. */
  readonly duplicates: number;
}

/** Extraction holds the event loop; after so many characters others get a turn. */
const CHARACTERS_PER_TURN = 262_144;

/** By a hash of their source. */
type Programs = Map<string, PlannedProgram & { readonly sampleIndexes: number[] }>;

/**
 * Takes the program out of each completion. Equal programs on tasks of equal content become one.
 */
export async function planBatch(batch: Batch): Promise<Plan> {
  const byTask = new Map<string, Programs>();
  const withoutProgram: { sampleIndex: number; reason: NoProgramReason }[] = [];
  let planned = 0;
  let duplicates = 0;
  let characters = 0;
  for (const [sampleIndex, { completion: held, task }] of batch.samples.entries()) {
    const completion = takeCompletion(held);
    characters += countCharacters(completion);
    if (characters > CHARACTERS_PER_TURN) {
      characters = 0;
      await setImmediate();
    }
    const extracted = extractProgram(completion, batch.extraction);
    if (extracted.kind === "no_program") {
      withoutProgram.push({ sampleIndex, reason: extracted.reason });
      continue;
    }
    const source = Buffer.from(extracted.source);
    const key = hash("sha256", source, "base64");
    const programs = byTask.get(task.contentKey) ?? new Map();
    byTask.set(task.contentKey, programs);
    const known = programs.get(key);
    known?.sampleIndexes.push(sampleIndex);
    if (known !== undefined) duplicates += 1;
    else programs.set(key, { id: `p${planned++}`, source, task, sampleIndexes: [sampleIndex] });
  }
  return { programs: dealByTask(byTask), withoutProgram, duplicates };
}

/**
 * One program of each task in turn. Programs of one task tend to fail alike, and a chunk full of time limits would
 * keep its worker long after the others are done.
 */
function dealByTask(byTask: ReadonlyMap<string, Programs>): PlannedProgram[] {
  let hands = [...byTask.values()].map((programs) => [...programs.values()]);
  const dealt: PlannedProgram[] = [];
  for (let round = 0; hands.length > 0; round += 1) {
    hands = hands.filter((hand) => round < hand.length);
    for (const hand of hands) dealt.push(hand[round] as PlannedProgram);
  }
  return dealt;
}

/** A chat's text may be anywhere in it; it counts as a fair part of a turn. */
function countCharacters(completion: Completion): number {
  return typeof completion === "string" ? completion.length : CHARACTERS_PER_TURN / 16;
}
