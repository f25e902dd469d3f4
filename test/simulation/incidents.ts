/**
 * Incidents: what fails together, for a while.
 *
 * Each lays some odds over the world's weather and may do something when it begins and when it ends. All that can be
 * due to it is over some time after; until then the world is in trouble.
 */
import { drawMs, type RangeMs } from "./cloud.ts";
import type { SimulatedProcess } from "./process.ts";
import type { Weather } from "./weather.ts";
import type { World } from "./world.ts";

interface Incident {
  readonly lastsMs: RangeMs;
  readonly odds: Partial<Weather>;
  /** By when it is mended; by default after what a dead creator's claim and the pass after it take. */
  readonly mendedWithinMs?: number;
  /** Whether the provider's list and the table answer, and tell the truth, so that what is gone is known to be. */
  readonly isSeen?: boolean;
  begin?(world: World): void;
  end?(world: World): void;
}

/** As the counts call them. */
export type IncidentName = keyof typeof incidents;

const hourMs = 3_600_000;
/** From one pass of the sweep to the end of the next. */
export const onePassMs = 75_000;

const incidents = {
  /** E2B's control plane answers nobody; what it was asked to create may come to be all the same. */
  providerAway: {
    // Not so long that a worker's time to live ends: the sweep renews it before there are 340 s left of it.
    lastsMs: [20_000, 270_000],
    odds: { createRefused: 0.4, createAmbiguous: 0.6, killFault: 1, renewFault: 1, listFault: 2 },
  },
  tableAway: { lastsMs: [2_000, 30_000], odds: { tableFault: 1 } },
  tableThrottled: { lastsMs: [20_000, 240_000], odds: { tableFault: 0.8 } },
  edgePartitioned: {
    lastsMs: [10_000, 240_000],
    isSeen: true,
    odds: { isEdgeAway: true, createUnproved: 1 },
    begin: ({ cloud }) => cloud.noteUnreachable(),
  },
  /** Some workers, each for itself, for as long as they live. */
  workersUnreachable: { lastsMs: [20_000, 120_000], isSeen: true, odds: { workerUnreachable: 0.2 } },
  workersDied: {
    lastsMs: [0, 10_000],
    isSeen: true,
    odds: {},
    begin: ({ cloud, random }) => cloud.endMany(random() < 0.6 ? 1 : random()),
  },
  killsFail: {
    lastsMs: [20_000, 240_000],
    isSeen: true,
    mendedWithinMs: onePassMs,
    odds: { killFault: 1, sandboxDeath: 0.1 },
  },
  killsUnheard: {
    lastsMs: [20_000, 240_000],
    isSeen: true,
    mendedWithinMs: onePassMs,
    odds: { killUnheard: 1, killFault: 0.1, sandboxDeath: 0.1 },
  },
  goneUntrue: { lastsMs: [20_000, 240_000], odds: { goneUntrue: 0.3, listMisses: 0.2 } },
  landingsLate: {
    lastsMs: [60_000, 300_000],
    odds: { createAmbiguous: 0.5, landsLate: 0.6, landsBeyond: 0.25 },
    begin: ({ cloud, random }) => cloud.endMany(random()),
  },
  clocksWrong: {
    lastsMs: [20_000, 240_000],
    odds: { wrongClock: 0.3 },
    begin(world) {
      const processes = [...world.handlers];
      const least = Math.floor(world.random() * processes.length);
      for (const [index, process] of processes.entries())
        if (index === least || world.random() < 0.2) setWrongClock(world, process);
    },
    end: rightClocks,
  },
} as const satisfies Record<string, Incident>;

/** An hour fast or slow, as with a wrong time zone; or a step back. */
export function setWrongClock({ random, wrongClocks }: World, process: SimulatedProcess): void {
  const luck = random();
  const stepMs = -10_000 - Math.round(random() * 600_000);
  process.setClock(luck < 0.5 ? hourMs : luck < 0.7 ? -hourMs : stepMs);
  wrongClocks.add(process);
  process.onCrash(() => wrongClocks.delete(process));
}

/** Some find the right time again, the others end. */
export function rightClocks({ wrongClocks, random }: World): void {
  for (const process of wrongClocks) {
    if (random() < 0.5) process.crash();
    else process.setClock(0);
  }
  wrongClocks.clear();
}

const claimAndPassMs = 200_000;

/** Incidents of the world's weather, one or two at a time, until the load is over. */
export async function haveIncidents(world: World): Promise<void> {
  const { time, random } = world;
  const { incidents: names, incidentEveryMs } = world.weather();
  while (names.length > 0) {
    await time.sleep(incidentEveryMs * (0.5 + random()));
    if (!world.isLoaded()) return;
    const count = names.length > 1 && random() < 0.3 ? 2 : 1;
    const drawn = new Set(Array.from({ length: count }, () => names[Math.floor(random() * names.length)]));
    await haveIncident(
      world,
      [...drawn].flatMap((name) => name ?? []),
    );
  }
}

async function haveIncident(world: World, names: readonly IncidentName[]): Promise<void> {
  const { time, random, watch } = world;
  const drawn = names.map((name): Incident => incidents[name]);
  const lastsMs = Math.max(...drawn.map((incident) => drawMs(incident.lastsMs, random)));
  for (const name of names) watch.counts[name] += 1;
  watch.note("incident", `${names.join(" and ")} for ${Math.round(lastsMs / 1_000)} s`);
  const mendedWithinMs = Math.max(...drawn.map((incident) => incident.mendedWithinMs ?? claimAndPassMs));
  const isSeen = drawn.every((incident) => incident.isSeen === true);
  world.beInTrouble(lastsMs + mendedWithinMs, isSeen);
  world.changeOdds(Object.assign({}, ...drawn.map(({ odds }) => odds)));
  for (const incident of drawn) incident.begin?.(world);
  await time.sleep(lastsMs);
  world.changeOdds({});
  for (const incident of drawn) incident.end?.(world);
  watch.note("incident", "is over");
}
