/** The small pools whose every interleaving is looked at. */
import type { SystemOptions } from "./explored-system.ts";

const nothing: SystemOptions = {
  slots: 1,
  handlers: 0,
  lives: 1,
  sweeps: 0,
  crashes: 0,
  lostAnswers: 0,
  ambiguous: 0,
  passings: 0,
  ready: 0,
};

export const smallPools = {
  /** Two create, or take what the other created; one may crash, one answer may get lost. */
  creators: { ...nothing, handlers: 2, crashes: 1, lostAnswers: 1 },
  /** Two use one worker twice each, and a lease may expire in between. */
  expiry: { ...nothing, handlers: 2, lives: 2, ready: 1, passings: 1 },
  /** A holder and a pass, either of which may crash. */
  sweeping: { ...nothing, handlers: 1, sweeps: 1, ready: 1, crashes: 1, passings: 1 },
  /** A creation without an answer, and a pass. */
  landing: { ...nothing, handlers: 1, sweeps: 1, ambiguous: 1, passings: 1, lostAnswers: 1 },
  /** Two creators, one without an answer, and a pass. */
  landings: { ...nothing, handlers: 2, sweeps: 1, ambiguous: 1, passings: 1 },
  /** Two passes at once, over a holder. */
  overlap: { ...nothing, handlers: 1, sweeps: 2, ready: 1, passings: 1 },
  /** Two on one worker, and a pass, anyone of whom may crash. */
  crowd: { ...nothing, handlers: 2, sweeps: 1, ready: 1, passings: 1, crashes: 1 },
  /** Two slots, one of them with a worker. */
  twoSlots: { ...nothing, slots: 2, handlers: 2, sweeps: 1, ready: 1, passings: 1 },
} as const satisfies Record<string, SystemOptions>;
