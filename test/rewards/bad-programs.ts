/** Batches in which programs called "bad" meet with something and all others are well. */
import { obey, type Script, type Step, type Turn } from "./scripted-workers.ts";

export const many = Array.from({ length: 24 }, (_, index) => `right ${index}`);

/** A program called "bad" meets this, every time or up to a number of attempts; others are well. */
export function badMeets(
  step: Step | ((turn: Turn) => ReturnType<Script>),
  attempts = Number.POSITIVE_INFINITY,
): Script {
  return (turn) => {
    const isBad = turn.job.source.startsWith("bad") && turn.attempt <= attempts;
    if (!isBad) return obey(turn);
    return typeof step === "function" ? step(turn) : step;
  };
}

export function withBad(count = 1): string[] {
  return [
    ...many.slice(0, 5),
    ...Array.from({ length: count }, (_, index) => `bad ${index}`),
    ...many.slice(5),
  ];
}

export function others(rewards: readonly (number | null)[], bad = 1): (number | null)[] {
  return [...rewards.slice(0, 5), ...rewards.slice(5 + bad)];
}

export const allRight = many.map(() => 1);
