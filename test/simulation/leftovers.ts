/**
 * How soon sandboxes that nobody needs must be gone.
 *
 * Looked at every second, which no creation is shorter than: how many there may be. A run has a right to the workers that it asked for until it is
 * finished, or 300 s after its last sign of life; and a batch to those that it holds, unless its run is finished. What
 * exists beyond that 60 s after a finish, or 180 s after an expiry (480 s after the last sign of life), is left over.
 * A creation that is under way for a run that is not finished comes on top: until it is there the pool doesn't count it
 * among its workers, and until its claim is over nobody knows that its creator is dead.
 */
import { shortTag } from "../../functions/pool/slot-row.ts";
import type { World } from "./world.ts";

const runLifeMs = 300_000;
const lookEveryMs = 1_000;
const goneAfterFinishMs = 60_000;
const goneAfterBeatMs = 480_000;

export interface Leftovers {
  /** The longest time that something was left after a finish. */
  longestAfterFinishMs: number;
  /** The longest time that something was left after a last sign of life. */
  longestAfterBeatMs: number;
}

interface Ledger {
  /** When so many sandboxes were rightful last, by number. */
  readonly rightfulMs: number[];
  /** When there were no more than that. */
  inOrderMs: number;
}

/** Looks until the load is over. */
export async function watchLeftovers(world: World, found: Leftovers): Promise<void> {
  const { time, cloud, settings, watch } = world;
  const finish = newLedger(settings.slots, time.nowMs());
  const vanish = newLedger(settings.slots, time.nowMs());
  while (world.isLoaded()) {
    await time.sleep(lookEveryMs);
    const nowMs = time.nowMs();
    const alive = cloud.alive.size;
    // Expired runs are given their whole 480 s here: only finishing is looked at. A dead holder's lease counts until
    // it is over.
    const { held, creating } = countTaken(world);
    const rightful = creating + Math.max(held, wanted(world, goneAfterBeatMs));
    const afterFinishMs = leftForMs(finish, alive, rightful, nowMs);
    const afterBeatMs = leftForMs(
      vanish,
      alive,
      Math.max(cloud.heldCount(), wanted(world, runLifeMs)),
      nowMs,
    );
    found.longestAfterFinishMs = Math.max(found.longestAfterFinishMs, afterFinishMs);
    found.longestAfterBeatMs = Math.max(found.longestAfterBeatMs, runLifeMs + afterBeatMs);
    if (afterFinishMs > goneAfterFinishMs) watch.violation("left 60 s after a finish", describe(world));
    if (afterBeatMs > goneAfterBeatMs - runLifeMs)
      watch.violation("left 8 minutes after the last sign of life", describe(world));
  }
}

function newLedger(slots: number, nowMs: number): Ledger {
  return { rightfulMs: Array.from({ length: slots + 2 }, () => nowMs), inOrderMs: nowMs };
}

/** For how long there have been more than was rightful, and so many have not been rightful. */
function leftForMs(ledger: Ledger, alive: number, rightful: number, nowMs: number): number {
  const { rightfulMs } = ledger;
  const most = rightfulMs.length - 1;
  for (let count = 0; count <= Math.min(rightful, most); count += 1) rightfulMs[count] = nowMs;
  if (alive <= rightful) ledger.inOrderMs = nowMs;
  return Math.min(nowMs - (rightfulMs[Math.min(alive, most)] ?? nowMs), nowMs - ledger.inOrderMs);
}

function wanted({ runs, time, settings }: World, lifeMs: number): number {
  let sum = 0;
  for (const { workers, beatAtMs, finishedAtMs } of runs.values())
    if (finishedAtMs === null && beatAtMs + lifeMs > time.nowMs()) sum += workers;
  return Math.min(settings.slots, sum);
}

/** Slots that, as far as the table tells, somebody holds, or creates in, for a run that isn't finished. */
function countTaken({ slots, time, settings, runs, weather }: World): { held: number; creating: number } {
  // A pass whose clock is behind sees a lease end later.
  const endsLaterMs = settings.graceMs + weather().crons.skewMs;
  const finished = new Set(
    [...runs].flatMap(([id, run]) => (run.finishedAtMs === null ? [] : [shortTag(id)])),
  );
  const count = { held: 0, creating: 0 };
  for (const row of slots()) {
    if (row.state !== "leased" && row.state !== "creating") continue;
    const isInTime = (row.leaseUntilMs ?? 0) + endsLaterMs > time.nowMs();
    const forRun = row.state === "leased" ? row.heldForRun : row.createdForRun;
    if (isInTime && !finished.has(forRun ?? "")) count[row.state === "leased" ? "held" : "creating"] += 1;
  }
  return count;
}

export function describe({ cloud, runs, time, slots }: World): string {
  const rows = slots().map((row) => {
    const leftS = Math.round(((row.leaseUntilMs ?? 0) - time.nowMs()) / 1_000);
    return `${row.slot} ${row.state}${row.leaseUntilMs === undefined ? "" : ` ${leftS}s`}`;
  });
  const alive = [...cloud.alive.values()].map(({ sandboxId, slot }) => `${sandboxId}@${slot}`).join(" ");
  const wishes = [...runs].flatMap(([id, { workers, beatAtMs, finishedAtMs }]) => {
    const ageS = Math.round((time.nowMs() - (finishedAtMs ?? beatAtMs)) / 1_000);
    return ageS > 900 ? [] : [`${id}:${workers}${finishedAtMs === null ? "" : " finished"} ${ageS}s`];
  });
  return `alive ${alive}; held ${cloud.heldCount()}; runs ${wishes.join(", ")}; slots ${rows.join(", ")}`;
}
