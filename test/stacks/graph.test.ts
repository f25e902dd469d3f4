/** What a deployment makes, as the real platform says it. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { makeGraph } from "./graph.ts";
import { ensurePlatform, projectRoot } from "./platform.ts";
import { rules } from "./rules.ts";
import { makeScene, type SceneName, scenes } from "./scenes.ts";

beforeAll(ensurePlatform, 300_000);

describe.each(Object.keys(scenes) as SceneName[])("%s", (name) => {
  let graph: Awaited<ReturnType<typeof makeScene>>;

  beforeAll(async () => {
    graph = await makeScene(name);
  });

  it("has nothing that would stop the deployment", () => {
    expect(graph.problems).toEqual([]);
    expect(graph.resources.length).toBeGreaterThan(20);
  });

  it.each(rules.filter(({ scene }) => scene === name))("$name", ({ check }) => check(graph));
});

it.each(["E2bApiKey", "RewardApiKeys"])(
  "stops before it begins without the secret %s, and names it",
  async (name) => {
    const secrets = { E2bApiKey: "a", RewardApiKeys: "b", [name]: undefined };
    const set = Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== undefined));
    const { problems } = await makeGraph({ stage: "ci", secrets: set as Record<string, string> });
    expect(problems[0]).toContain(`sst secret set ${name}`);
  },
);

it("names the functions by path, and imports nothing of them", () => {
  const stacks = readdirSync(join(projectRoot, "stacks")).filter((name) => name.endsWith(".ts"));
  expect(stacks).toContain("endpoint.ts");
  for (const name of stacks) {
    expect(readFileSync(join(projectRoot, "stacks", name), "utf8")).not.toMatch(/from "\.\.\//);
  }
});
