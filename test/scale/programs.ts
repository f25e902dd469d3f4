/**
 * Programs that say how long they take: a number that makes each one new, and the CPU of a case in milliseconds.
 *
 * They are short on purpose: who plans a batch lets others have a turn after so many characters, which simulated time
 * does not wait for.
 */
import type { Batch, Sample } from "../../functions/rewards/batch.ts";
import { echoTask, fence } from "../rewards/echo-batches.ts";
import { drawMs } from "../simulation/cloud.ts";
import { caseOverheadCpuMs, casesPerProgram, programMix, timeLimitMs } from "./assumptions.ts";

/** Completions of one prompt. */
const groupSize = 8;
const syntaxError = "!";

/** CPU of one case in milliseconds; null for what is not Python. */
export function readCaseMs(source: string): number | null {
  const [, word = ""] = source.trim().split(" ");
  return word === syntaxError ? null : Number(word);
}

/** Of each kind there are as many in each hundred as there should be: what is compared differs less by luck then. */
function createLuck(random: () => number): () => number {
  let deck: number[] = [];
  return () => {
    if (deck.length === 0) deck = Array.from({ length: 100 }, (_, card) => (card + 0.5) / 100);
    return deck.splice(Math.floor(random() * deck.length), 1)[0] as number;
  };
}

function drawCase(luck: number, random: () => number): string {
  const { syntaxErrors, endless, slow, quick } = programMix;
  if (luck < syntaxErrors) return syntaxError;
  if (luck < syntaxErrors + endless) return "9999";
  if (luck < syntaxErrors + endless + slow.share) return String(Math.round(drawMs(slow.caseMs, random)));
  return String(Math.round(quick.leastMs - quick.meanBeyondMs * Math.log(1 - random())));
}

/** What a program occupies a worker's CPUs for, on average, all its cases together. */
export function meanProgramCpuMs(): number {
  const { syntaxErrors, endless, slow, quick } = programMix;
  const quickShare = 1 - syntaxErrors - endless - slow.share;
  const perCase =
    quickShare * (quick.leastMs + quick.meanBeyondMs) +
    (slow.share * (slow.caseMs[0] + slow.caseMs[1])) / 2 +
    endless * timeLimitMs;
  return (
    casesPerProgram * (perCase + (1 - syntaxErrors) * caseOverheadCpuMs) + syntaxErrors * caseOverheadCpuMs
  );
}

/** Makes batches of programs that nobody sent before. */
export function createBatches(random: () => number): (samples: number, deadlineMs: number) => Batch {
  const drawLuck = createLuck(random);
  let programs = 0;
  let groups = 0;
  return (samples, deadlineMs) => {
    const made: Sample[] = [];
    while (made.length < samples) {
      const task = echoTask(casesPerProgram, groups++ * casesPerProgram);
      for (let member = 0; member < groupSize && made.length < samples; member += 1)
        made.push({ task, completion: fence(`${programs++} ${drawCase(drawLuck(), random)}`) });
    }
    return {
      samples: made,
      extraction: { extraction: "first", reasoning: "auto" },
      deadlineMs,
      keepOutput: false,
    };
  };
}
