/** Each rule of the protocol and each clause of its conditions, taken out of the product's source, does harm. */
import { describe, expect, it, vi } from "vitest";
import { clauseKillers, type Killer, ruleKillers } from "./mutants.ts";
import { applied, clauseMutations, loadChecks, type Mutation } from "./mutations.ts";
import { ruleMutations } from "./rule-mutations.ts";
import { smallPools } from "./small-pools.ts";

vi.setConfig({ testTimeout: 120_000 });

/** Three passes: one that misses the workers, and creations in the next two, at the plan's pace. */
const idleDeathsWithinMs = 180_000;

type Checks = Awaited<ReturnType<typeof loadChecks>>;

const sound = await loadChecks(null);
const clauses = clauseMutations().map((mutation) => {
  const clause = sound.clauseOf(mutation.verb, mutation.index);
  const killer: Killer = clauseKillers[`${mutation.verb}: ${clause}`] ?? { by: "write" };
  return { name: `${mutation.verb} without «${clause}»`, mutation, clause, killer };
});

describe("a rule that is broken is found", () => {
  it.each(ruleMutations.map((mutation) => ({ mutation, name: mutation.without })))(
    "$name",
    async ({ mutation, name }) => {
      const killer = ruleKillers[name];
      if (killer === undefined) throw new Error("nothing finds it");
      await expectFound(mutation, killer);
    },
  );

  it("has a rule for each", () => {
    expect(Object.keys(ruleKillers).toSorted()).toEqual(
      ruleMutations.map(({ without }) => without).toSorted(),
    );
  });
});

describe("a clause that is missing is found", () => {
  it.each(clauses)("$name, by $killer.by", async ({ mutation, clause, killer }) => {
    if (killer.by !== "write") await expectFound(mutation, killer);
    // Whatever else finds it, there is a state in which it alone refuses.
    const [whole, mutant] = [sound, await loadChecks(mutation)];
    const kept = await whole.playScene(mutation.verb, clause);
    expect(kept).not.toBeNull();
    expect(await mutant.playScene(mutation.verb, clause)).toBe((kept ?? 0) + 1);
  });

  it("has no clause in the list that isn't there", () => {
    const there = clauses.map(({ mutation, clause }) => `${mutation.verb}: ${clause}`);
    expect(Object.keys(clauseKillers).filter((name) => !there.includes(name))).toEqual([]);
    const atTheWrite = clauses.filter(({ killer }) => killer.by === "write").length;
    console.log(
      `mutants: ${ruleMutations.length} rules, ${clauses.length} clauses, of which at the write only: ${atTheWrite}`,
    );
  });
});

describe("a mutation", () => {
  it("must change one place, and that place must be there", () => {
    const [mutation] = ruleMutations;
    if (mutation === undefined) throw new Error("no mutations");
    expect(applied(mutation)).toContain(mutation.to);
    expect(() => applied({ ...mutation, from: "what is not there" })).toThrow("not there exactly once");
  });
});

async function expectFound(mutation: Mutation, killer: Killer): Promise<void> {
  const mutant = await loadChecks(mutation);
  switch (killer.by) {
    case "worlds":
      return expect(await harmsInWorlds(mutant, killer)).toContain(killer.harm);
    case "interleavings": {
      const { violations } = await mutant.explore(smallPools[killer.pool]);
      return expect(violations.map(({ what }) => what)).toContain(killer.harm);
    }
    case "directed":
      expect(await sound.overtakeDrainer()).toEqual([]);
      return expect(await mutant.overtakeDrainer()).toContain(killer.harm);
    case "publication":
      expect(await sound.losePublication()).toEqual({ kind: "not_now", killed: 0 });
      return expect(await mutant.losePublication()).not.toEqual({ kind: "not_now", killed: 0 });
    case "known":
      expect(sound.knownToCreation()).toEqual(["its own"]);
      return expect(mutant.knownToCreation()).not.toEqual(["its own"]);
    case "pace":
      expect(await sound.isPaceFree()).toBe(true);
      return expect(await mutant.isPaceFree()).toBe(false);
    case "silence":
      expect(await isQuiet(sound)).toBe(true);
      return expect(await isQuiet(mutant)).toBe(false);
    case "idle deaths":
      expect(await sound.loseIdleWorkers(1)).toBeLessThan(idleDeathsWithinMs);
      return expect((await mutant.loseIdleWorkers(1)) ?? Number.POSITIVE_INFINITY).toBeGreaterThan(
        idleDeathsWithinMs,
      );
    default:
      throw new Error(`${killer.by} is for clauses`);
  }
}

/** What happens in worlds of that weather, until the harm that is looked for is among it. */
async function harmsInWorlds(
  { simulate, weathers }: Checks,
  { weather: name, harm, mostSeeds }: Extract<Killer, { by: "worlds" }>,
): Promise<Set<string>> {
  const weather = weathers.find((one) => one.name === name);
  if (weather === undefined) throw new Error(`no weather ${name}`);
  const harms = new Set<string>();
  for (let seed = 1; seed <= mostSeeds && !harms.has(harm); seed += 1) {
    const { violations } = await simulate({ seed, weather, loadMs: 900_000 });
    for (const { what } of violations) harms.add(what);
  }
  return harms;
}

/** Half an hour of silence: the same workers, and what no slot knows is gone within two minutes. */
async function isQuiet({ stayIdle }: Checks): Promise<boolean> {
  const { before, after, leastTtlMs, strayMs } = await stayIdle(1);
  const isSame = before.length > 0 && before.join() === after.join();
  return isSame && leastTtlMs > 100_000 && strayMs < 120_000;
}
