/** Deploys: from one moment to the next what is started is of a new version, while the old one works on. */
import type { World } from "./world.ts";

const betweenMs = 600_000;
/** Old containers get a last request, their batches end, and a pass of the sweep or two make room. */
const overWithinMs = 200_000;

/** Deploys a version after another, and sometimes the one before again, until the load is over. */
export async function haveDeploys(world: World): Promise<void> {
  const { time, random, watch } = world;
  for (let version = 2; ; version += 1) {
    await time.sleep(betweenMs * (0.3 + random()));
    if (!world.isLoaded()) return;
    const isRollback = version > 2 && random() < 0.3;
    const next = isRollback ? `v${version - 2}` : `v${version}`;
    watch.counts.deploys += 1;
    watch.note("deploy", next);
    world.beInTrouble(overWithinMs);
    world.deploy(next);
  }
}
