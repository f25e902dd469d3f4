/** A function's folder as SST v4 deploys it: one module, bundled with SST's own settings, and the files beside it. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import type { LambdaNode } from "./runtimes.ts";

export interface Bundle {
  /** What becomes `/var/task`. */
  readonly folder: string;
  readonly module: string;
  readonly moduleBytes: number;
  remove(): void;
}

const targets = { node22: "es2023", node24: "es2024" } as const satisfies Record<LambdaNode, string>;

const banner = [
  "import { createRequire as topLevelCreateRequire } from 'module';",
  "const require = topLevelCreateRequire(import.meta.url);",
  'import { fileURLToPath as topLevelFileUrlToPath, URL as topLevelURL } from "url"',
  "const __filename = topLevelFileUrlToPath(import.meta.url)",
  'const __dirname = topLevelFileUrlToPath(new topLevelURL(".", import.meta.url))',
  "",
].join("\n");

/** Bundles the module at `entry`; the supervisor's files are copied beside it. */
export async function bundleFunction(entry: string, node: LambdaNode): Promise<Bundle> {
  const folder = mkdtempSync(join(tmpdir(), "code-rewards-bundle-"));
  const module = join(folder, "bundle.mjs");
  await build({
    entryPoints: [entry],
    outfile: module,
    bundle: true,
    platform: "node",
    format: "esm",
    target: targets[node],
    mainFields: ["module", "main"],
    external: ["sharp", "pg-native"],
    keepNames: true,
    sourcemap: "linked",
    banner: { js: banner },
    logLevel: "error",
  });
  const supervisor = join(folder, "supervisor");
  mkdirSync(supervisor);
  cpSync("functions/supervisor", supervisor, { recursive: true });
  return {
    folder,
    module,
    moduleBytes: statSync(module).size,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Makes the moment known in which the client of E2B is loaded. Throws when the bundle has no such moment. */
export function traceE2bClient({ module }: Bundle, line: string): void {
  const source = readFileSync(module, "utf8");
  const begins = '"node_modules/e2b/dist/index.mjs"() {';
  if (source.split(begins).length !== 2)
    throw new Error("the bundle does not load E2B's client in one place, when it is needed");
  writeFileSync(module, source.replace(begins, `${begins} console.error(${JSON.stringify(line)});`));
}
