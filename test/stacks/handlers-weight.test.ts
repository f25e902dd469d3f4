/** What a cold start pays for our code, against what it pays for the client of the table alone. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Bundle, bundleFunction } from "./lambda/bundle.ts";
import { measureImports } from "./lambda/imports.ts";
import { fetchLambdaRuntimes, fetchTimeoutMs, type LambdaRuntimes, lambdaNodes } from "./lambda/runtimes.ts";

const entries = {
  rewards: "functions/reward.ts",
  cleanup: "functions/cleanup.ts",
  dynamodb: "test/stacks/lambda/dynamodb-alone.ts",
} as const;
type Name = keyof typeof entries;
const names = Object.keys(entries) as Name[];

let runtimes: LambdaRuntimes;
const bundles = {} as Record<Name, Bundle>;

beforeAll(async () => {
  runtimes = await fetchLambdaRuntimes();
  for (const name of names) bundles[name] = await bundleFunction(entries[name], "node22");
}, fetchTimeoutMs);

afterAll(() => {
  for (const bundle of Object.values(bundles)) bundle.remove();
});

/** Whole, so that all that is done at the start is done. */
const environment = {
  CODE_REWARDS_API_KEYS: "key",
  CODE_REWARDS_TABLE: "table",
  E2B_API_KEY: "key",
  AWS_REGION: "us-east-1",
};
it("is a bundle of a few times the size of the table's client", () => {
  const base = bundles.dynamodb.moduleBytes;
  const times = (name: Name) => bundles[name].moduleBytes / base;
  for (const name of names) {
    const kib = Math.round(bundles[name].moduleBytes / 1024);
    console.log(`bundle of ${name}: ${kib} KiB, ${times(name).toFixed(2)} times the table's client`);
  }
  expect(times("rewards")).toBeLessThan(4.2);
  expect(times("cleanup")).toBeLessThan(3.8);
});

it.each(lambdaNodes)("loads in a few times the time of the table's client, on %s", async (node) => {
  const modules = {
    rewards: bundles.rewards.module,
    cleanup: bundles.cleanup.module,
    dynamodb: bundles.dynamodb.module,
  };
  const CODE_REWARDS_SUPERVISOR_FOLDER = join(bundles.rewards.folder, "supervisor");
  const least = await measureImports(runtimes.node(node), modules, {
    environment: { ...environment, CODE_REWARDS_SUPERVISOR_FOLDER },
    times: 5,
  });
  for (const name of names) {
    const times = (least[name] / least.dynamodb).toFixed(2);
    console.log(
      `import of ${name} on ${node}: ${least[name].toFixed(0)} ms of CPU, ${times} times the table's client`,
    );
  }
  expect(least.rewards / least.dynamodb).toBeLessThan(4.5);
  expect(least.cleanup / least.dynamodb).toBeLessThan(3);
});
