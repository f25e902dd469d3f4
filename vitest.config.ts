import { defineConfig } from "vitest/config";

/** Tests of code alone, mostly in virtual time: what they say does not depend on a second file beside them. */
const timeless = ["grading", "tasks", "rewards", "pool", "api", "simulation"];
const timelessFiles = timeless.map((folder) => `test/${folder}/**/*.test.ts`);

export default defineConfig({
  test: {
    testTimeout: 30_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "timeless",
          include: timelessFiles,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "real time",
          include: ["test/**/*.test.ts"],
          exclude: timelessFiles,
          // Programs are judged by the CPU they get: a file that fills the machine must not do so beside another one.
          fileParallelism: false,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
