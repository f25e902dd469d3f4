/** How often what goes wrong: one weather per simulated world, drawn from its seed. Chances are per call. */
import type { IncidentName } from "./incidents.ts";

export interface ProcessOdds {
  /** Of crashing at a call: before it was sent, while it is under way, or before its answer is read. */
  readonly crash: number;
  /** Of standing still for up to `freezeMs` when an answer arrives. */
  readonly freeze: number;
  readonly freezeMs: number;
  /** How far the process's clock may be off, either way. */
  readonly skewMs: number;
}

export interface Weather {
  readonly name: string;
  readonly handlers: ProcessOdds;
  readonly crons: ProcessOdds;
  /** A cron that starts a second one beside it, or does not come at all. */
  readonly cronTwice: number;
  readonly cronMissing: number;
  /** How long a pass goes on starting things. */
  readonly cronBudgetMs: number;
  /** A write that was applied but whose answer got lost: the client repeats it. */
  readonly lostAnswer: number;
  /** A call of the table that ends in a fault, applied or not. */
  readonly tableFault: number;
  readonly createRefused: number;
  /** No answer in time; the sandbox may land late. */
  readonly createAmbiguous: number;
  readonly createUnproved: number;
  readonly killFault: number;
  readonly renewFault: number;
  readonly listFault: number;
  /** How long a new sandbox may be missing from lists. */
  readonly listLagMs: number;
  /** A sandbox that dies by itself during a chunk. */
  readonly sandboxDeath: number;
  /** A trainer that vanishes instead of finishing. */
  readonly vanish: number;
  /** A batch that is cancelled. */
  readonly cancel: number;
  /** A batch that several callers send under one key, again and again until they are answered. */
  readonly repeat: number;
  /** A part of chunks that takes up to 200 s. */
  readonly longChunk: number;
  /** A part of chunks that takes up to a batch's longest deadline, which a worker's life may not last for. */
  readonly endlessChunk: number;
  /** A trainer that only beats for a while, between two batches. */
  readonly pause: number;
  /** What fails together for a while, drawn again and again. */
  readonly incidents: readonly IncidentName[];
  /** How much of its time a world spends without an incident, on average, between two. */
  readonly incidentEveryMs: number;
  /** No handler reaches any worker; the workers are alive. */
  readonly isEdgeAway: boolean;
  /** A worker that can't be reached any more from this chunk on, though it is alive. */
  readonly workerUnreachable: number;
  /** "Gone" is said of a sandbox that is alive. */
  readonly goneUntrue: number;
  /** A list that says nothing of a sandbox that is alive, and not new. */
  readonly listMisses: number;
  /** A kill that is done, and whose answer nobody gets. */
  readonly killUnheard: number;
  /** Of creations without an answer: those that land after their creator gave up, while the slot is still theirs. */
  readonly landsLate: number;
  /** Of creations without an answer: those that land when the slot may long be another's. */
  readonly landsBeyond: number;
  /** A process that begins with a wrong clock. */
  readonly wrongClock: number;
  /** New versions of the supervisor, one after another. */
  readonly isDeployed: boolean;
  /** The plan's, if it is not to be drawn. */
  readonly lifeMs?: number;
  /** Whether all that fails is incidents: soon after each the pool must be whole again, and serve. */
  readonly isMended: boolean;
  /**
   * Whether the cron comes on time and the provider answers, so that the times within which sandboxes must be gone can
   * be held to.
   */
  readonly keepsTimes: boolean;
}

const still: ProcessOdds = { crash: 0, freeze: 0, freezeMs: 0, skewMs: 0 };

export const calm: Weather = {
  name: "calm",
  handlers: still,
  crons: still,
  cronTwice: 0,
  cronMissing: 0,
  cronBudgetMs: 50_000,
  lostAnswer: 0,
  tableFault: 0,
  createRefused: 0,
  createAmbiguous: 0,
  createUnproved: 0,
  killFault: 0,
  renewFault: 0,
  listFault: 0,
  listLagMs: 0,
  sandboxDeath: 0,
  vanish: 0,
  cancel: 0,
  repeat: 0,
  longChunk: 0,
  endlessChunk: 0,
  pause: 0,
  incidents: [],
  incidentEveryMs: 400_000,
  isEdgeAway: false,
  workerUnreachable: 0,
  goneUntrue: 0,
  listMisses: 0,
  killUnheard: 0,
  landsLate: 0,
  landsBeyond: 0,
  wrongClock: 0,
  isDeployed: false,
  isMended: false,
  keepsTimes: true,
};

const foul = {
  lostAnswer: 0.02,
  tableFault: 0.004,
  createRefused: 0.1,
  createAmbiguous: 0.1,
  createUnproved: 0.03,
  killFault: 0.05,
  renewFault: 0.03,
  listFault: 0.08,
  listLagMs: 8_000,
  sandboxDeath: 0.01,
  vanish: 0.3,
  cancel: 0.04,
  repeat: 0.06,
  longChunk: 0.006,
  keepsTimes: false,
};

/** Everything at once. */
export const storm: Weather = {
  ...calm,
  ...foul,
  name: "storm",
  handlers: { crash: 0.004, freeze: 0.002, freezeMs: 200_000, skewMs: 2_000 },
  crons: { crash: 0.01, freeze: 0.01, freezeMs: 150_000, skewMs: 2_000 },
  cronTwice: 0.3,
  cronMissing: 0.1,
};

/** Containers stand still, crons too, and go on with what they had read. */
export const freezing: Weather = {
  ...storm,
  name: "freezing",
  handlers: { crash: 0.002, freeze: 0.006, freezeMs: 300_000, skewMs: 2_000 },
  crons: { crash: 0.002, freeze: 0.1, freezeMs: 300_000, skewMs: 2_000 },
  cronBudgetMs: 600_000,
  repeat: 0.2,
};

/** Handlers die at any call, and trainers vanish; the cron and the provider do what they should. */
export const dying: Weather = {
  ...calm,
  name: "dying handlers",
  handlers: { crash: 0.012, freeze: 0, freezeMs: 0, skewMs: 2_000 },
  crons: { ...still, skewMs: 2_000 },
  cronTwice: 0.3,
  lostAnswer: 0.01,
  sandboxDeath: 0.01,
  vanish: 0.4,
  cancel: 0.04,
  repeat: 0.06,
  longChunk: 0.004,
};

/** The provider is the trouble. */
export const provider: Weather = {
  ...storm,
  name: "bad provider",
  handlers: { crash: 0.001, freeze: 0, freezeMs: 0, skewMs: 2_000 },
  createRefused: 0.25,
  createAmbiguous: 0.25,
  createUnproved: 0.1,
  listFault: 0.3,
  killFault: 0.2,
  sandboxDeath: 0.04,
};

/** Hardly an answer of the table's arrives at once. */
export const lossy: Weather = {
  ...calm,
  name: "lost answers",
  handlers: { crash: 0.002, freeze: 0, freezeMs: 0, skewMs: 1_000 },
  lostAnswer: 0.3,
  sandboxDeath: 0.05,
  vanish: 0.3,
  cancel: 0.04,
  repeat: 0.06,
  keepsTimes: false,
};

/** Hardly a sandbox can be killed at the first attempt, and many are of no use. */
export const stubborn: Weather = {
  ...calm,
  name: "stubborn sandboxes",
  handlers: { crash: 0.004, freeze: 0, freezeMs: 0, skewMs: 1_000 },
  createUnproved: 0.4,
  killFault: 0.6,
  sandboxDeath: 0.02,
  vanish: 0.3,
  cancel: 0.04,
  repeat: 0.06,
  keepsTimes: false,
};

/** No cron for as long as the load lasts. */
export const unswept: Weather = {
  ...calm,
  name: "no cron",
  handlers: { crash: 0.001, freeze: 0, freezeMs: 0, skewMs: 1_000 },
  cronMissing: 1,
  cancel: 0.04,
  repeat: 0.06,
  longChunk: 0.05,
  keepsTimes: false,
};

/** Workers die all the time, and whoever makes new ones stands still meanwhile. */
export const frozenCreators: Weather = {
  ...calm,
  name: "frozen creators",
  handlers: { crash: 0.001, freeze: 0.05, freezeMs: 200_000, skewMs: 2_000 },
  crons: { crash: 0.002, freeze: 0.05, freezeMs: 200_000, skewMs: 2_000 },
  cronTwice: 0.5,
  cronBudgetMs: 600_000,
  createAmbiguous: 0.2,
  sandboxDeath: 0.3,
  vanish: 0.3,
  cancel: 0.04,
  repeat: 0.06,
  keepsTimes: false,
};

/** In these anything fails by itself, and all the time. */
export const restlessWeathers: readonly Weather[] = [
  storm,
  freezing,
  dying,
  provider,
  lossy,
  stubborn,
  unswept,
  frozenCreators,
];
