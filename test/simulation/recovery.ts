/**
 * Whether the pool is whole again after an incident.
 *
 * Looked at every five seconds, once the last incident is over for long enough: what is wrong with the pool may be so
 * for the time that two passes of the sweep take, and no longer.
 */
import type { SlotRow } from "../../functions/pool/slot-row.ts";
import { onePassMs } from "./incidents.ts";
import { describe } from "./leftovers.ts";
import { type World, wantedWorkers } from "./world.ts";

const lookEveryMs = 5_000;
const twoPassesMs = 140_000;

/** Looks until the load is over. */
export async function watchRecovery(world: World): Promise<void> {
  const { time, watch } = world;
  const sinceMs = new Map<string, number>();
  while (world.isLoaded()) {
    await time.sleep(lookEveryMs);
    const nowMs = time.nowMs();
    const wrongs = [
      ...(world.isQuietSince(nowMs, "unseen")
        ? world.slots().flatMap((row) => occupiedByNothing(world, row))
        : []),
      ...(world.isQuietSince(nowMs) ? findWrongs(world) : []),
    ];
    const names = new Set(wrongs.map(({ name }) => name));
    for (const name of sinceMs.keys()) if (!names.has(name)) sinceMs.delete(name);
    for (const { name, what, withinMs } of wrongs) {
      const fromMs = sinceMs.get(name) ?? nowMs;
      sinceMs.set(name, fromMs);
      if (nowMs - fromMs > withinMs) watch.violation(what, `${name}: ${describe(world)}`);
    }
  }
}

interface Wrong {
  /** The same as long as it is the same wrong. */
  readonly name: string;
  readonly what: string;
  readonly withinMs: number;
}

function findWrongs(world: World): Wrong[] {
  const slots = world.slots();
  const strays = strangers(world, slots).map(
    (id): Wrong => ({ name: id, what: "a sandbox that no slot knows stays", withinMs: twoPassesMs }),
  );
  const missing: Wrong = { name: "missing", what: "workers are missing", withinMs: twoPassesMs };
  return [
    ...slots.flatMap((row) => wrongsOf(world, row)),
    ...strays,
    ...(isMissing(world, slots) ? [missing] : []),
  ];
}

/** A list may lack what is new. */
const isNewMs = 60_000;

/** A slot whose sandbox is gone, as the provider's list says too, is free after the next pass. */
function occupiedByNothing({ cloud, time }: World, row: SlotRow): Wrong[] {
  if (row.state !== "draining" || row.sandboxId === undefined) return [];
  if ((row.bornAtMs ?? 0) > time.nowMs() - isNewMs) return [];
  const isOccupied = [...cloud.alive.values()].some(({ slot }) => slot === row.slot);
  const what = "a slot whose sandbox is gone is not free";
  return isOccupied
    ? []
    : [{ name: `slot ${row.slot}.${row.generation} is free`, what, withinMs: onePassMs }];
}

function wrongsOf({ cloud, time, settings, version }: World, row: SlotRow): Wrong[] {
  const found: Wrong[] = [];
  const add = (what: string, withinMs: number) =>
    found.push({ name: `slot ${row.slot}.${row.generation} ${what}`, what, withinMs });
  const isAlive = row.sandboxId !== undefined && cloud.alive.has(row.sandboxId);
  if (row.state === "draining") add("a slot is drained and drained", twoPassesMs + settings.drainLeaseMs);
  if (row.state === "ready" && !isAlive) add("a dead worker stays in its slot", twoPassesMs + onePassMs);
  if (row.state === "ready" && row.supervisorVersion !== version())
    add("a worker of an old version stays", twoPassesMs);
  const longestLeaseMs = row.state === "creating" ? settings.createLeaseMs : settings.leaseMs;
  if ((row.leaseUntilMs ?? 0) > time.nowMs() + longestLeaseMs + 2 * settings.graceMs)
    add("a lease is longer than any", onePassMs);
  return found;
}

function strangers({ cloud }: World, slots: readonly SlotRow[]): string[] {
  const rows = new Map(slots.map((row) => [row.slot, row]));
  return [...cloud.alive.values()].flatMap(({ sandboxId, slot, generation }) => {
    const row = rows.get(slot);
    const isKnown = row?.sandboxId === sandboxId || row?.generation === generation;
    return isKnown ? [] : [sandboxId];
  });
}

/** Whether runs want more workers than there are or are being made, and there is room. */
function isMissing({ runs, settings, time }: World, slots: readonly SlotRow[]): boolean {
  const there = slots.filter(({ state }) => state !== "empty" && state !== "draining").length;
  return there < wantedWorkers(runs, settings.slots, time.nowMs());
}
