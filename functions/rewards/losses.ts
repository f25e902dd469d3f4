/**
 * What the loss of a worker says of the programs that it ran.
 *
 * Theory of operation. A program that ends workers ends those that run it, wherever that is; a platform that fails ends
 * workers whatever they run. So a loss is held against nobody when another worker of the batch, which ran none of the
 * same programs, was lost at about the same time while both were alive. Yet several programs of a batch may all end
 * workers, and must not be each other's excuse for ever: a loss speaks for others only if nothing that it may be due to
 * had lost a worker before. Each program does so at most once, which bounds it.
 */
import type { PlannedProgram } from "./plan.ts";

/** Workers that are lost within so short a time may have been lost together. */
export const togetherMs = 2_000;

export interface LossFacts {
  readonly workerId: string;
  /** When the worker was last known to be alive before this work: an order of `nextOrder`, or null if it never was. */
  readonly aliveAt: number | null;
  /** What was under way. */
  readonly programs: readonly PlannedProgram[];
  /** Whether none of what the worker may have been lost over had lost one before. */
  readonly isFirst: boolean;
}

export interface Loss {
  readonly atMs: number;
  /** Whether it was the platform, as far as is known by now. */
  isExcused(): boolean;
}

export interface Losses {
  /** Moments in their order: two of the same millisecond differ. */
  nextOrder(): number;
  note(facts: LossFacts): Loss;
}

interface Noted extends LossFacts {
  readonly atMs: number;
  readonly lostAt: number;
}

export function createLosses(nowMs: () => number): Losses {
  const noted: Noted[] = [];
  let order = 0;
  return {
    nextOrder: () => ++order,
    note(facts) {
      const loss = { ...facts, atMs: nowMs(), lostAt: ++order };
      noted.push(loss);
      return { atMs: loss.atMs, isExcused: () => noted.some((other) => speaksFor(other, loss)) };
    },
  };
}

function speaksFor(other: Noted, loss: Noted): boolean {
  if (other.workerId === loss.workerId || !other.isFirst) return false;
  if (Math.abs(other.atMs - loss.atMs) > togetherMs) return false;
  const wereAliveTogether = (other.aliveAt ?? 0) < loss.lostAt && (loss.aliveAt ?? 0) < other.lostAt;
  return wereAliveTogether && !other.programs.some((program) => loss.programs.includes(program));
}
