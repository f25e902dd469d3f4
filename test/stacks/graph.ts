/**
 * One stage's resources, as the real platform would make them.
 *
 * Does what SST's command does: bundles `sst.config.ts` alone to ask it for its app, then together with the platform's
 * `run()`, its globals and the app's facts, and runs that.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { build, type Plugin } from "esbuild";
import { platformFolder, projectRoot } from "./platform.ts";

export interface Resource {
  readonly type: string;
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: what a provider takes; each test knows what it looks at
  readonly inputs: any;
  readonly retainOnDelete: boolean;
}

/** What SST's command is asked to bundle for a function. */
export interface Build {
  readonly functionID: string;
  readonly handler: string;
  readonly runtime: string;
  readonly links: Readonly<Record<string, unknown>>;
  readonly copyFiles: readonly { readonly from: string; readonly to: string }[];
}

export interface Graph {
  readonly app: {
    readonly name: string;
    readonly stage: string;
    readonly removal: string;
    readonly protect: boolean;
    readonly version?: string;
  };
  readonly resources: readonly Resource[];
  readonly builds: readonly Build[];
  readonly outputs: Readonly<Record<string, unknown>>;
  /** What would have stopped the deployment. */
  readonly problems: readonly string[];
}

export interface GraphOptions {
  readonly stage: string;
  /** Where `sst.config.ts` is. Default: this project. */
  readonly folder?: string;
  readonly secrets?: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const programPath = fileURLToPath(new URL("graph-program.ts", import.meta.url));

/** Values that must turn up nowhere but in the functions' links. */
export const secretValues = { E2bApiKey: "e2b-key-of-the-test", RewardApiKeys: "first-key,second-key" };

export async function makeGraph(options: GraphOptions): Promise<Graph> {
  const { stage, folder = projectRoot, secrets = secretValues } = options;
  const workFolder = mkdtempSync(join(tmpdir(), "code-rewards-graph-"));
  const bundlePath = join(platformFolder, `sst.config.${workFolder.slice(-6)}.cjs`);
  try {
    const app = await askForApp(folder, stage, bundlePath);
    const graphPath = join(workFolder, "graph.json");
    await bundleProgram({ folder, app, workFolder, graphPath, bundlePath });
    const secretVariables = Object.entries(secrets).map(([name, value]) => [`SST_SECRET_${name}`, value]);
    await run(process.execPath, ["--no-deprecation", bundlePath], {
      env: { PATH: process.env.PATH, ...Object.fromEntries(secretVariables) },
      timeout: 60_000,
    });
    return unwrapSecrets(JSON.parse(readFileSync(graphPath, "utf8"))) as Graph;
  } finally {
    rmSync(bundlePath, { force: true });
    rmSync(workFolder, { recursive: true, force: true });
  }
}

async function askForApp(folder: string, stage: string, bundlePath: string): Promise<Graph["app"]> {
  await bundle({
    folder,
    bundlePath,
    code: `
      import config from ${JSON.stringify(join(folder, "sst.config.ts"))};
      Promise.resolve(config.app($input)).then((app) => console.log(JSON.stringify(app)));`,
    banner: "const $config = (config) => config;",
    define: { $input: { stage } },
  });
  const { stdout } = await run(process.execPath, [bundlePath]);
  return { removal: "retain", protect: false, providers: { aws: {} }, ...JSON.parse(stdout), stage };
}

interface ProgramBundle {
  readonly folder: string;
  readonly app: Graph["app"];
  readonly workFolder: string;
  readonly graphPath: string;
  readonly bundlePath: string;
}

async function bundleProgram({ folder, app, workFolder, graphPath, bundlePath }: ProgramBundle) {
  const facts = { app, workFolder, graphPath };
  await bundle({
    folder,
    bundlePath,
    code: `
      import { run } from ${JSON.stringify(join(platformFolder, "src/auto/run.ts"))};
      import config from ${JSON.stringify(join(folder, "sst.config.ts"))};
      import { output, runtime } from "@pulumi/pulumi";
      import { getMonitor } from "@pulumi/pulumi/runtime/settings";
      import { deserializeProperties } from "@pulumi/pulumi/runtime/rpc";
      import { recordGraph } from ${JSON.stringify(programPath)};
      void recordGraph({
        runtime, getMonitor, deserializeProperties,
        run: async () => {
          const outputs = await run(config.run);
          return new Promise((resolve) => output(outputs).apply(resolve));
        },
      }, ${JSON.stringify(facts)});`,
    inject: [join(platformFolder, "src/shim/run.js")],
    head: importGlobals(),
    define: {
      $app: app,
      $dev: false,
      $cli: {
        command: "deploy",
        dev: false,
        paths: { home: workFolder, root: folder, work: workFolder, platform: platformFolder },
        state: { version: {} },
      },
    },
  });
}

/** The namespaces that the config's files find without importing them. */
function importGlobals(): string {
  const lock = readFileSync(join(platformFolder, "../provider-lock.json"), "utf8");
  const providers: { alias: string; package: string }[] = JSON.parse(lock);
  const all = [...providers, { alias: "sst", package: join(platformFolder, "src/components") }];
  return all.map((entry) => `import * as ${entry.alias} from "${entry.package}"; `).join("");
}

interface BundleOptions {
  readonly folder: string;
  readonly bundlePath: string;
  readonly code: string;
  readonly banner?: string;
  readonly define: Readonly<Record<string, unknown>>;
  readonly inject?: string[];
  /** Put before each of the config's own files. */
  readonly head?: string;
}

/** With the settings of SST's command, but for the packages: they stay where it installed them, which is ten times faster. */
async function bundle(options: BundleOptions) {
  const { folder, bundlePath, code, banner = "", define, inject = [], head = "" } = options;
  await build({
    stdin: { contents: code, resolveDir: folder, sourcefile: "eval.ts", loader: "ts" },
    banner: { js: banner },
    mainFields: ["module", "main"],
    format: "cjs",
    platform: "node",
    target: "es2023",
    bundle: true,
    packages: "external",
    outfile: bundlePath,
    nodePaths: [join(platformFolder, "node_modules")],
    define: Object.fromEntries(Object.entries(define).map(([name, value]) => [name, JSON.stringify(value)])),
    inject,
    plugins: [prepend(folder, head)],
    logLevel: "error",
  });
}

function prepend(folder: string, head: string): Plugin {
  return {
    name: "globals",
    setup(build) {
      build.onLoad({ filter: /(sst\.config|stacks\/[^/]+)\.ts$/ }, ({ path }) => {
        if (!path.startsWith(folder) || path.includes("/test/")) return null;
        return { contents: head + readFileSync(path, "utf8"), loader: "ts" };
      });
      // SST takes no import in its config: only what is loaded when the program runs.
      build.onResolve({ filter: /.*/ }, ({ importer, kind, path }) => {
        const isRefused = importer.endsWith("/sst.config.ts") && kind === "import-statement";
        if (!isRefused || head.includes(`"${path}"`)) return null;
        return { errors: [{ text: `sst.config.ts must not import ${path}` }] };
      });
    },
  };
}

/** Pulumi marks secret values by wrapping them; what is asked of them here is only where they are. */
const secretMark = "4dabf18193072939515e22adb298388d";

function unwrapSecrets(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unwrapSecrets);
  if (typeof value !== "object" || value === null) return value;
  if (secretMark in value && "value" in value) return unwrapSecrets(value.value);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, unwrapSecrets(inner)]));
}
