/** The supervisor's own files, as they are sent to a worker. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Fault } from "../rewards/faults.ts";

export interface SupervisorFiles {
  readonly files: readonly { readonly name: string; readonly content: string }[];
  /** What a supervisor of these files says its version is. */
  readonly version: string;
  /** The version as rows keep it, which have less room. */
  readonly shortVersion: string;
}

const ownFolder = fileURLToPath(new URL("../supervisor/", import.meta.url));
const versionDigits = 16;
const shortVersionDigits = 12;

/**
 * Reads the supervisor's files; a bundle, which moves this module, has to say where they are. Throws `misconfigured`
 * when they aren't there.
 */
export function readSupervisorFiles(folder: string = ownFolder): SupervisorFiles {
  const files = readNames(folder).map((name) => ({
    name,
    content: readFileSync(join(folder, name), "utf8"),
  }));
  // Each name, a zero byte, the content, a zero byte: so does functions/supervisor/version.py.
  const digest = createHash("sha256");
  for (const { name, content } of files) digest.update(`${name}\0${content}\0`);
  const hex = digest.digest("hex");
  return { files, version: hex.slice(0, versionDigits), shortVersion: hex.slice(0, shortVersionDigits) };
}

function readNames(folder: string): string[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith(".py"));
    if (names.includes("main.py")) return names.sort();
  } catch {
    // Told below: a folder that can't be read is as good as one without a supervisor.
  }
  throw new Fault("misconfigured", `There are no files of the supervisor in ${folder}.`);
}
