/** The batches that the bench sends. Every program of a batch is new to the server, except where a load says otherwise. */
import { smokeCompletions, smokeRewards, smokeTask } from "../../functions/local/smoke-programs.ts";
import type { BenchSample } from "./contestant.ts";
import { benchTask, longTask, oneCaseTask, writeProgram, writeSumProgram } from "./programs.ts";

export interface Load {
  readonly name: string;
  /** What one batch is, for the number of its round. */
  make(round: number): readonly BenchSample[];
  readonly expected: readonly number[];
  /** How often each contestant grades it. */
  readonly rounds: number;
  /** Whether the recipe is asked too. */
  readonly isCompared: boolean;
}

let variants = 0;
const nextVariant = () => {
  variants += 1;
  return variants;
};

const rightPrograms = (count: number) => (): BenchSample[] =>
  Array.from({ length: count }, () => ({ task: benchTask, completion: writeProgram(nextVariant()) }));

/** `count` samples of which `distinct` differ, in a fixed mixed order. */
const repeatedPrograms = (count: number, distinct: number) => (): BenchSample[] => {
  const programs = rightPrograms(distinct)();
  return Array.from({ length: count }, (_, index) => programs[(index * 7) % distinct] as BenchSample);
};

const smokeNames = Object.keys(smokeCompletions) as (keyof typeof smokeCompletions)[];

/** Mostly right programs, among them wrong ones, crashes and texts without a program. */
const mixedKinds = [
  { reward: 1, write: writeProgram },
  { reward: 1, write: writeProgram },
  { reward: 1, write: writeProgram },
  { reward: 1, write: writeProgram },
  { reward: 0, write: (variant: number) => `\`\`\`python\nprint([${variant}])\n\`\`\`` },
  { reward: 0, write: (variant: number) => `\`\`\`python\nraise ValueError(${variant})\n\`\`\`` },
  { reward: 1 / 3, write: (variant: number) => `\`\`\`python\nprint({}) or ${variant}\n\`\`\`` },
  { reward: 0, write: (variant: number) => `I don't know number ${variant}.` },
];

const fill = (count: number, value: number) => Array.from({ length: count }, () => value);

/** Sent before anything is measured; also the batch whose requests are counted. */
export const warmUp: Load = {
  name: "64 programs",
  make: rightPrograms(64),
  expected: fill(64, 1),
  rounds: 5,
  isCompared: true,
};

export const loads: readonly Load[] = [
  {
    name: "the smoke test's 5",
    make: () => smokeNames.map((name) => ({ task: smokeTask, completion: smokeCompletions[name] })),
    expected: smokeNames.map((name) => smokeRewards[name]),
    rounds: 3,
    isCompared: true,
  },
  { name: "16 programs", make: rightPrograms(16), expected: fill(16, 1), rounds: 7, isCompared: true },
  warmUp,
  {
    name: "64, of which 24 differ",
    make: repeatedPrograms(64, 24),
    expected: fill(64, 1),
    rounds: 5,
    isCompared: true,
  },
  {
    name: "512 mixed",
    make: () =>
      Array.from({ length: 512 }, (_, index) => ({
        task: benchTask,
        completion: mixedKinds[index % mixedKinds.length]?.write(nextVariant()) ?? "",
      })),
    expected: Array.from({ length: 512 }, (_, index) => mixedKinds[index % mixedKinds.length]?.reward ?? 0),
    rounds: 1,
    isCompared: true,
  },
  {
    name: "1 program × 100 cases",
    make: () => [{ task: longTask, completion: writeSumProgram(nextVariant()) }],
    expected: [1],
    rounds: 5,
    isCompared: true,
  },
  {
    name: "100 programs × 1 case",
    make: () =>
      Array.from({ length: 100 }, () => ({ task: oneCaseTask, completion: writeSumProgram(nextVariant()) })),
    expected: fill(100, 1),
    rounds: 5,
    isCompared: false,
  },
  // The last, by which time both sides have met their code often enough to be warm.
  { name: "1 program", make: rightPrograms(1), expected: [1], rounds: 60, isCompared: true },
];
