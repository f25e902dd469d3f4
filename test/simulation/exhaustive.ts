/**
 * Every interleaving of a few processes on a small pool, over the product's own code.
 *
 * Theory of operation. Handlers run the product's lease source and sweeps its whole pass; each of their calls to the
 * table, the provider or a supervisor waits until the explorer lets it happen. At each point it may let any process's
 * next call happen, lose its answer, crash the process, let a late sandbox land, or let the leases' time pass. A state
 * is the table, the provider, and what each process has been told so far, which is all that its next steps depend on;
 * each is gone on from once. Running code can't be copied, so a state is come back to by the way that led there.
 */
import { createSystem, type System, type SystemOptions } from "./explored-system.ts";

export interface ExploreOptions extends SystemOptions {
  /** Gives up beyond that. */
  readonly mostStates?: number;
  readonly mostMs?: number;
}

export interface Exploration {
  readonly states: number;
  readonly steps: number;
  /** States in which nobody has anything to do any more; from each of them sweeps heal the pool. */
  readonly ends: number;
  readonly deepest: number;
  /** Whether all states were seen. */
  readonly isComplete: boolean;
  /** Each kind once, with the steps that led there. */
  readonly violations: readonly { readonly what: string; readonly steps: readonly string[] }[];
  readonly ms: number;
}

/** Explores depth first; stops at the first violation. */
export async function explore(options: ExploreOptions): Promise<Exploration> {
  const startedAtMs = performance.now();
  const { mostStates = Number.POSITIVE_INFINITY, mostMs = Number.POSITIVE_INFINITY } = options;
  const seen = new Set<string>();
  const healed = new Set<string>();
  let [steps, ends, deepest] = [0, 0, 0];
  let isComplete = true;
  let violations: Exploration["violations"] = [];
  /** Ways to states that were not gone on from, as far as they are known. */
  const open: string[][] = [[]];

  while (open.length > 0 && violations.length === 0) {
    if (seen.size >= mostStates || performance.now() - startedAtMs > mostMs) {
      isComplete = false;
      break;
    }
    let way = open.pop() ?? [];
    const system = await replay(options, way);
    steps += way.length;
    // Goes on along the first way that leads to something new, and leaves the others for later.
    for (;;) {
      if (system.violations.length > 0) break;
      const state = system.state();
      if (seen.has(state)) break;
      seen.add(state);
      deepest = Math.max(deepest, way.length);
      const [first, ...others] = system.choices();
      if (first === undefined) {
        ends += 1;
        if (healed.has(system.outside())) break;
        healed.add(system.outside());
        await system.heal();
        break;
      }
      for (const other of others) open.push([...way, other]);
      await system.take(first);
      steps += 1;
      way = [...way, first];
    }
    violations = system.violations.map((what) => ({ what, steps: way }));
  }
  const ms = Math.round(performance.now() - startedAtMs);
  return { states: seen.size, steps, ends, deepest, isComplete, violations, ms };
}

async function replay(options: SystemOptions, way: readonly string[]): Promise<System> {
  const system = await createSystem(options);
  for (const choice of way) await system.take(choice);
  return system;
}
