import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Programs are judged by the CPU they get: a file that fills the machine must not do so beside another one.
    fileParallelism: false,
  },
});
