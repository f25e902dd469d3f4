/** The rules notice each change for the worse, and there is no rule that nothing could break. */
import { beforeAll, expect, it } from "vitest";
import type { Graph } from "./graph.ts";
import { mutants } from "./mutants.ts";
import { ensurePlatform } from "./platform.ts";
import { rules } from "./rules.ts";
import { makeScene, type SceneName, scenes } from "./scenes.ts";

const stopped = "the deployment would not begin";

/** What the tests of a graph would say of it. */
function complaints(graph: Graph, scene: SceneName): string[] {
  const broken = rules.filter((rule) => {
    if (rule.scene !== scene) return false;
    try {
      rule.check(graph);
      return false;
    } catch {
      return true;
    }
  });
  return [...(graph.problems.length > 0 ? [stopped] : []), ...broken.map(({ name }) => name)];
}

const broken = new Set<string>();

beforeAll(ensurePlatform, 300_000);

it.each(Object.keys(scenes) as SceneName[])("nothing is wrong with the scene %s as it is", async (name) => {
  expect(complaints(await makeScene(name), name)).toEqual([]);
});

it.concurrent.each(mutants)("$name", async (mutant) => {
  const found = await makeScene(mutant.scene, mutant).then(
    (graph) => complaints(graph, mutant.scene),
    (error: unknown) => {
      expect(String(error)).toContain("must not import"); // the one change that is refused before anything runs
      return [stopped];
    },
  );
  for (const name of found) broken.add(name);
  expect(found).not.toEqual([]);
});

it("leaves no rule unbroken", () => {
  expect(rules.map(({ name }) => name).filter((name) => !broken.has(name))).toEqual([]);
});
