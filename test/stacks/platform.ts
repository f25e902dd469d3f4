/** SST's own platform, as its command writes it: the types and the components that a deployment runs. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));
export const platformFolder = join(projectRoot, ".sst", "platform");

/** Nothing is asked of AWS; Pulumi and bun, which only a deployment needs, are not looked for. */
const offline = { SST_SKIP_DEPENDENCY_CHECK: "1", NO_BUN: "1", SST_TELEMETRY_DISABLED: "1" };

/** Writes the platform unless this version is there: once, for about 300 MB of packages. */
export function ensurePlatform(): void {
  if (readInstalledVersion() === sstVersion()) return;
  execFileSync("npx", ["sst", "install", "--stage", "ci"], {
    cwd: projectRoot,
    env: { ...process.env, ...offline },
    stdio: ["ignore", "inherit", "inherit"],
  });
}

function sstVersion(): string {
  return JSON.parse(readFileSync(join(projectRoot, "node_modules/sst/package.json"), "utf8")).version;
}

/** An installation that was broken off lacks its last part, the provider's package. */
function readInstalledVersion(): string | null {
  const parts = ["config.d.ts", "node_modules/@pulumi/aws/package.json"];
  const isWhole = parts.every((part) => existsSync(join(platformFolder, part)));
  return isWhole ? readFileSync(join(platformFolder, "version"), "utf8").trim() : null;
}
