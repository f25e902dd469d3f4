import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores are the smallest machine this must pass on; more files at once would only make them wait for each other.
    maxWorkers: 2,
  },
});
