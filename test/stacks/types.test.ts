/** The stacks against the types of the real platform, mistakes included. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, expect, it } from "vitest";
import { ensurePlatform, projectRoot } from "./platform.ts";

beforeAll(ensurePlatform, 300_000);

it("use the platform as its types say, and those see mistakes", async () => {
  const checked = promisify(execFile)("npx", ["tsc", "-p", "test/stacks/types"], { cwd: projectRoot });
  expect(await checked.catch((error) => error.stdout)).toEqual({ stdout: "", stderr: "" });
}, 180_000);
