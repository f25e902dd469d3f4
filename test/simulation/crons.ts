/** The cleanup cron: a pass each minute, in a process of its own; sometimes two at once, sometimes none. */
import { sweepPool } from "../../functions/pool/sweep/sweep.ts";
import type { ProcessOdds } from "./weather.ts";
import type { World } from "./world.ts";

const everyMs = 60_000;

export async function cron(world: World): Promise<void> {
  const { time, random } = world;
  await time.sleep(random() * everyMs);
  for (let pass = 1; world.isLoaded(); pass += 1) {
    const { crons, cronMissing, cronTwice, cronBudgetMs } = world.weather();
    if (random() >= cronMissing) void sweepOnce(world, `cron${pass}`, crons, cronBudgetMs);
    if (random() < cronTwice) {
      time.after(random() * 5_000, () => void sweepOnce(world, `cron${pass}'`, crons, cronBudgetMs));
    }
    await time.sleep(everyMs);
  }
}

/** One pass; over when its process is. */
export async function sweepOnce(
  world: World,
  name: string,
  odds: ProcessOdds,
  budgetMs = 50_000,
): Promise<void> {
  const { watch } = world;
  const process = world.startProcess(name, odds);
  watch.counts.sweeps += 1;
  const pass = sweepPool(world.contextOf(process), { deadlineAtMs: process.clock.nowMs() + budgetMs });
  pass.catch((error: unknown) => watch.violation("a bug", String(error)));
  const report = await Promise.race([pass, process.crashed]);
  for (const { code, detail } of report?.faults ?? [])
    if (code === "internal") watch.violation("a bug", `of the sweep: ${detail}`);
}
