/**
 * What Lambda runs functions with, fetched once into a folder of the user's cache: AWS's runtime interface clients
 * and the Nodes of its runtimes, in the versions that `runtimes/package-lock.json` pins.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";

export const lambdaNodes = ["node22", "node24"] as const;
export type LambdaNode = (typeof lambdaNodes)[number];
/** Major versions of the runtime interface client. They differ in what they take for an invocation's end. */
export const lambdaClients = [3, 4] as const;
export type LambdaClient = (typeof lambdaClients)[number];

/** The client that AWS ships with each Node. */
export const clientOf = { node22: 3, node24: 4 } as const satisfies Record<LambdaNode, LambdaClient>;

export interface LambdaRuntimes {
  /** The executable of that Node. */
  node(name: LambdaNode): string;
  /** Node's arguments that start the client. */
  client(version: LambdaClient): readonly string[];
}

/** A minute or two the first time on a machine, and again when the versions change. */
export const fetchTimeoutMs = 300_000;

const pinned = fileURLToPath(new URL("./runtimes/", import.meta.url));
const files = ["package.json", "package-lock.json"];

export async function fetchLambdaRuntimes(): Promise<LambdaRuntimes> {
  const version = createHash("sha256");
  for (const file of files) version.update(readFileSync(join(pinned, file)));
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "code-rewards");
  const folder = join(cache, `lambda-runtimes-${version.digest("hex").slice(0, 12)}`);
  if (!existsSync(folder)) await install(folder);
  const modules = join(folder, "node_modules");
  return {
    node: (name) => join(modules, name, "bin", "node"),
    client: (version) => startOf(join(modules, `aws-lambda-ric-${version}`), version),
  };
}

/** The newer client starts by itself; the older one is a library, which AWS's image starts like this. */
function startOf(folder: string, version: LambdaClient): readonly string[] {
  if (version === 4) return [join(folder, "index.mjs")];
  const library = JSON.stringify(pathToFileURL(join(folder, "dist", "index.mjs")).href);
  const start = `await (await import(${library})).run(process.env.LAMBDA_TASK_ROOT, process.env._HANDLER);`;
  return ["--input-type=module", "--eval", start];
}

/** Whole or not at all, also when two do it at once. The client's native part, which would have to be compiled, is left out. */
async function install(folder: string): Promise<void> {
  const draft = `${folder}.${process.pid}`;
  mkdirSync(draft, { recursive: true });
  try {
    for (const file of files) copyFileSync(join(pinned, file), join(draft, file));
    const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    await promisify(execFile)("npm", args, { cwd: draft, timeout: fetchTimeoutMs });
    renameSync(draft, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}
