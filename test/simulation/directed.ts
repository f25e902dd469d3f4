/** One interleaving, told step by step, that chance and bounded search don't come to. */
import { createSystem, type SystemOptions } from "./explored-system.ts";

const twoOfEach: SystemOptions = {
  slots: 1,
  handlers: 2,
  lives: 1,
  sweeps: 2,
  crashes: 1,
  lostAnswers: 0,
  ambiguous: 0,
  passings: 2,
  ready: 0,
  patienceMs: 1_000_000,
};

/**
 * A pass takes a slot whose creator died, and stands still; another pass does all of it, and a handler creates a worker
 * there and works. Then the first pass goes on.
 */
export async function overtakeDrainer(): Promise<readonly string[]> {
  const system = await createSystem(twoOfEach);
  const take = async (start: string) => {
    const choice = system.choices().find((possible) => possible.startsWith(start));
    if (choice === undefined) throw new Error(`no ${start} among ${system.choices().join(", ")}`);
    await system.take(choice);
  };
  for (const step of ["h0//query", "h0//claim", "h0/crash", "time/"]) await take(step);
  for (const step of ["s0//list", "s0//query", "s0//expire", "time/"]) await take(step);
  for (const step of ["s1//list", "s1//query", "s1//expire", "s1//list", "s1//empty"]) await take(step);
  for (const step of ["h1//query", "h1//claim", "h1//create", "h1//publish", "h1//start"]) await take(step);
  await take("s0//list");
  while (system.choices().some((choice) => choice.startsWith("s0//"))) await take("s0//");
  return system.violations;
}
